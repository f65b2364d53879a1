from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from broker_core.catalog.catalog_errors import (
    CatalogError,
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
)
from broker_core.catalog.topic_decisions import (
    adjustment,
    creation,
    deletion,
    has_name,
    merge,
    replacement,
)
from broker_core.catalog.topic_record import MAX_PROPERTIES_BYTES, TopicRecord
from broker_core.names import TopicName
from broker_core.names.listed_names import ListedNames
from broker_core.names.partitions import MAX_PARTITIONS
from broker_core.names.topic_id import new_topic_id
from tests.support.narrowed import present


def name(local: str) -> TopicName:
    return TopicName.parse(f"persistent://a/b/{local}")


def topic(listed: str, properties: Mapping[str, str] | None = None) -> TopicRecord:
    made = datetime.fromtimestamp(0, UTC)
    return TopicRecord(name("x"), new_topic_id(), ListedNames.parse(listed), properties or {}, made)


def shown(record: TopicRecord | None) -> tuple[str, dict[str, str]] | None:
    return None if record is None else (str(record.listed), dict(record.properties))


@pytest.mark.parametrize(
    ("local", "partitions", "there", "made"),
    [
        ("x", 0, None, "*"),
        ("x", 3, None, "0-2"),
        ("x-partition-1", 0, "0,2", "0-2"),
        ("x-partition-1", 0, "*,2", "*,1-2"),
    ],
)
def test_creation(local: str, partitions: int, there: str | None, made: str) -> None:
    before = None if there is None else topic(there, {"k": "v"})
    after = creation(name(local), partitions, {"k": "v"})(before)
    assert shown(after) == (made, {"k": "v"})
    assert after is not None
    assert after.name == name("x")
    if before is not None:
        assert after.topic_id == before.topic_id


@pytest.mark.parametrize(
    ("local", "partitions", "there", "error", "said"),
    [
        ("x", 0, "*", TopicExists, "there already"),
        ("x", 0, "0-2", TopicExists, "there already"),
        ("x", 3, "0-2", TopicExists, "there already"),
        ("x-partition-1", 0, "0-2", TopicExists, "there already"),
        ("x-partition-3", 0, "0-2", PartitionRefused, "has 3 partitions, of which .*x-partition-3 is none"),
        ("x-partition-0", 0, "*", PartitionRefused, "there is no topic persistent://a/b/x with any"),
        ("x-partition-0", 0, None, PartitionRefused, "there is no topic persistent://a/b/x with any"),
        ("x-partition-1", 2, "0,2", PartitionRefused, "none of its own"),
    ],
)
def test_creation_refused(
    local: str, partitions: int, there: str | None, error: type[CatalogError], said: str
) -> None:
    with pytest.raises(error, match=said):
        creation(name(local), partitions)(None if there is None else topic(there))


def test_a_refused_partition_says_how_many_there_are() -> None:
    with pytest.raises(PartitionRefused) as beyond:
        creation(name("x-partition-7"))(topic("0-2"))
    with pytest.raises(PartitionRefused) as alone:
        creation(name("x-partition-7"))(None)
    assert (beyond.value.partitions, alone.value.partitions) == (3, 0)


def test_a_missing_partition_has_the_properties_of_its_topic() -> None:
    there = topic("0,2", {"k": "v"})
    assert shown(creation(name("x-partition-1"))(there)) == ("0-2", {"k": "v"})
    with pytest.raises(PartitionRefused, match="it has the properties of persistent://a/b/x"):
        creation(name("x-partition-1"), properties={"k": "other"})(there)


@pytest.mark.parametrize("count", [-1, MAX_PARTITIONS + 1])
def test_a_count_that_no_topic_has(count: int) -> None:
    with pytest.raises(CatalogError, match=f"0 to {MAX_PARTITIONS} partitions, not {count}"):
        creation(name("x"), count)
    with pytest.raises(CatalogError, match="partitions, not"):
        merge(name("x"), {}, count)


@pytest.mark.parametrize("may_replace", [True, False])
def test_the_same_again_is_no_change(may_replace: bool) -> None:
    for there, partitions in ((topic("*", {"k": "v"}), 0), (topic("0-4", {"k": "v"}), 5)):
        assert replacement(name("x"), partitions, {"k": "v"}, may_replace=may_replace)(there) == there
    there = topic("0-2", {"k": "v"})
    after = replacement(name("x-partition-2"), 0, None, may_replace=may_replace)(there)
    assert after == there, "a partition that is there"


def test_a_partition_that_was_deleted_comes_back_with_the_number() -> None:
    there = topic("1,4")
    for decide in (
        replacement(name("x"), 5, {}, may_replace=False),
        replacement(name("x"), 5, {}, may_replace=True),
        merge(name("x"), {}, 5),
    ):
        assert shown(decide(there)) == ("0-4", {})
    assert shown(merge(name("x"), {"k": "v"})(there)) == ("1,4", {"k": "v"}), "no number is given"


def test_a_replacement_keeps_the_id() -> None:
    before = topic("0-1", {"k": "v", "gone": ""})
    with pytest.raises(TopicExists, match="other partitions, properties or configs"):
        replacement(name("x"), 3, {"k": "w"}, may_replace=False)(before)
    after = replacement(name("x"), 3, {"k": "w"}, may_replace=True)(before)
    assert shown(after) == ("0-2", {"k": "w"})
    assert after is not None
    assert (after.topic_id, after.created) == (before.topic_id, before.created)


@pytest.mark.parametrize(
    ("there", "partitions", "said", "now"),
    [
        ("0-2", 2, "has 3 partitions: there may be more of them, not 2", 3),
        ("0-2", 0, "has 3 partitions", 3),
        ("*", 1, "without partitions, and stays one", 0),
    ],
)
def test_partitions_may_only_grow(there: str, partitions: int, said: str, now: int) -> None:
    for decide in (
        replacement(name("x"), partitions, {}, may_replace=True),
        merge(name("x"), {}, partitions),
    ):
        with pytest.raises(PartitionCountRefused, match=said) as refused:
            decide(topic(there))
        assert refused.value.partitions == now


def test_merge() -> None:
    before = topic("0-1", {"kept": "1", "changed": "2", "gone": "3"})
    after = merge(name("x"), {"changed": "4", "gone": None, "never": None, "new": ""}, 4)(before)
    assert shown(after) == ("0-3", {"kept": "1", "changed": "4", "new": ""})
    by_partition = merge(name("x-partition-1"), {"gone": None})(before)
    assert shown(by_partition) == ("0-1", {"kept": "1", "changed": "2"})
    assert merge(name("x"), {"kept": "1"})(before) == before
    with pytest.raises(PartitionRefused, match="the number is that of persistent://a/b/x"):
        merge(name("x-partition-1"), {}, 4)(before)


def test_merged_properties_may_become_too_large() -> None:
    large = "v" * (MAX_PROPERTIES_BYTES // 2)
    with pytest.raises(CatalogError, match="at most"):
        merge(name("x"), {"b": large})(topic("*", {"a": large}))


@pytest.mark.parametrize(
    ("local", "partitioned", "there", "left"),
    [
        ("x", None, "*", None),
        ("x", None, "*,0-2", None),
        ("x", True, "0-2", None),
        ("x", False, "*", None),
        ("x-partition-1", False, "0-2", "0,2"),
        ("x-partition-1", None, "1", None),
    ],
)
def test_deletion(local: str, partitioned: bool | None, there: str, left: str | None) -> None:
    after = deletion(name(local), partitioned=partitioned)(topic(there))
    assert (None if after is None else str(after.listed)) == left


@pytest.mark.parametrize(
    ("local", "partitioned", "there", "error"),
    [
        ("x", None, None, TopicMissing),
        ("x-partition-3", None, "0-2", TopicMissing),
        ("x", False, "0-2", PartitionedRefused),
        ("x", True, "*", PartitionedRefused),
        ("x-partition-1", True, "0-2", PartitionedRefused),
    ],
)
def test_deletion_refused(
    local: str, partitioned: bool | None, there: str | None, error: type[CatalogError]
) -> None:
    with pytest.raises(error):
        deletion(name(local), partitioned=partitioned)(None if there is None else topic(there))


def test_a_name_that_looks_like_a_partition_may_be_a_topic_of_its_own() -> None:
    """An import makes one of {"name": "x-partition-1", "partitions": 2}."""
    own = replace(topic("0-1"), name=name("x-partition-1"))
    assert has_name(own, name("x-partition-1"))
    assert deletion(name("x-partition-1"))(own) is None
    with pytest.raises(TopicExists):
        creation(name("x-partition-1"))(own)
    with pytest.raises(TopicExists):
        replacement(name("x-partition-1"), 0, None, may_replace=True)(own)


def test_configs_are_kept_replaced_and_merged() -> None:
    given = {"retention.ms": "5", "cleanup.policy": "compact"}
    made = present(creation(name("x"), configs=given)(None))
    assert made.configs == given
    assert replacement(name("x"), 0, {}, may_replace=False)(made) == made, "what is left out stays"
    with pytest.raises(TopicExists):
        replacement(name("x"), 0, {}, may_replace=False, configs={})(made)
    less = present(merge(name("x"), {}, configs={"retention.ms": None, "segment.ms": "7"})(made))
    assert less.configs == {"cleanup.policy": "compact", "segment.ms": "7"}
    none = present(merge(name("x"), {}, configs=None)(made))
    assert none.configs == {}


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({"no.such": "1"}, "Unknown topic config name: no.such"),
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"max.compaction.lag.ms": "8"}, "conflict topic config"),
    ],
)
def test_configs_that_change_are_such_as_topics_of_kafka_can_have(configs: dict[str, str], said: str) -> None:
    there = replace(topic("*"), configs={"min.compaction.lag.ms": "9", "old": "1"})
    assert merge(name("x"), {"k": "v"})(there) is not None, "those that are there stay"
    there = replace(there, configs={"min.compaction.lag.ms": "9"})
    for decide in (
        merge(name("x"), {}, configs=configs),
        adjustment(name("x"), configs=lambda now: {**now, **configs}),
    ):
        with pytest.raises(TopicInvalid, match=said):
            decide(there)
