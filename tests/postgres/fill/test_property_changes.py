from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.catalog import PropertiesChange
from broker_core.errors import BrokerCoreError, InvalidPattern
from broker_core.names import NamespaceName, TopicName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.load_file import load_topics
from broker_core_postgres.fill.merge import version_of
from broker_core_postgres.fill.property_changes import (
    TopicPropertiesReport,
    set_properties,
    set_properties_of_matching,
    storable_change,
)
from tests.support.postgres_server import Database

NAMESPACE = NamespaceName("a", "b")
_FILE = b"""{"name": "x", "partitions": 3, "properties": {"k": "v", "old": "1"}}
{"name": "y"}
{"name": "x-more"}
{"name": "non-persistent://a/b/x"}
"""


@pytest.fixture
async def filled(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect()
    await load_topics(connection, NAMESPACE, io.BytesIO(_FILE))
    yield connection
    await connection.close()


async def properties(connection: Any) -> dict[str, dict[str, str]]:
    rows = await connection.fetch(
        "SELECT domain || '://' || local_name, properties::text FROM broker_core.topics"
    )
    return {name.removeprefix("persistent://"): json.loads(text) for name, text in rows}


async def test_a_topic_beside_a_partition_of_its_name_keeps_the_same_properties(filled: Any) -> None:
    pair = b'{"name": "z", "properties": {"k": "1"}}\n{"name": "z-partition-0", "properties": {"k": "1"}}'
    await load_topics(filled, NAMESPACE, io.BytesIO(pair), add=True)
    for name in ("z", "z-partition-0"):
        change = PropertiesChange({"k": name})
        assert (await set_properties(filled, TopicName("persistent", NAMESPACE, name), change)).changed == 2
        found = await properties(filled)
        assert found["z"] == found["z-partition-0"] == {"k": name}
    report = await set_properties_of_matching(filled, NAMESPACE, "a/b/z", PropertiesChange(replace=True))
    assert report == TopicPropertiesReport(topics=1, names=2, changed=2)


async def test_a_topic_is_changed_with_all_its_partitions(filled: Any) -> None:
    change = PropertiesChange({"k": "w", "new": "é"}, ["old"])
    for name in ("x", "x-partition-1"):
        report = await set_properties(filled, TopicName.parse(f"persistent://a/b/{name}"), change)
        assert report == TopicPropertiesReport(topics=1, names=3, changed=3 if name == "x" else 0)
    assert await properties(filled) == {
        f"x-partition-{index}": {"k": "w", "new": "é"} for index in range(3)
    } | {
        "y": {},
        "x-more": {},
        "non-persistent://x": {},
    }
    assert await version_of(filled, "a/b") == 2, "what changes nothing raises no version"


async def test_all_others_may_be_taken_away(filled: Any) -> None:
    topic = TopicName.parse("persistent://a/b/x")
    await set_properties(filled, topic, PropertiesChange({"only": "1"}, replace=True))
    assert (await properties(filled))["x-partition-0"] == {"only": "1"}
    await set_properties(filled, topic, PropertiesChange(replace=True))
    assert (await properties(filled))["x-partition-0"] == {}


async def test_all_topics_of_a_pattern_are_changed_at_once(filled: Any) -> None:
    change = PropertiesChange({"k": "all"})
    tried = await set_properties_of_matching(filled, NAMESPACE, "a/b/x.*", change, dry_run=True)
    assert tried == TopicPropertiesReport(topics=3, names=5, changed=5)
    assert await version_of(filled, "a/b") == 1
    assert await set_properties_of_matching(filled, NAMESPACE, "a/b/x.*", change) == tried
    assert await version_of(filled, "a/b") == 2
    of = await properties(filled)
    assert {name for name, own in of.items() if own.get("k") == "all"} == of.keys() - {"y"}
    none = await set_properties_of_matching(filled, NAMESPACE, "a/b/none", change)
    assert none == TopicPropertiesReport(0, 0, 0)


async def test_what_cannot_be_is_refused(filled: Any) -> None:
    with pytest.raises(FillingFailed, match="no topic persistent://a/b/none"):
        await set_properties(filled, TopicName.parse("persistent://a/b/none"), PropertiesChange({"k": "v"}))
    for pattern, why in (("(", r"'\('"), ("x.*", r"such as 'a/b/x\.\*'"), ("a/b/(?=x).*", "Unsupported")):
        with pytest.raises(InvalidPattern, match=why):
            await set_properties_of_matching(filled, NAMESPACE, pattern, PropertiesChange({"k": "v"}))
    assert await version_of(filled, "a/b") == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (PropertiesChange(), "No property"),
        (PropertiesChange({"k": "v"}, ["k"]), "both set and unset"),
        (PropertiesChange({"k": "\0"}), "NUL"),
        (PropertiesChange({}, ["\0"]), "NUL"),
        (PropertiesChange({"k": "v" * 70_000}), "at most 65536"),
    ],
    ids=["nothing", "both", "nul", "nul-key", "large"],
)
def test_changes_are_checked_first(change: PropertiesChange, why: str) -> None:
    with pytest.raises(BrokerCoreError, match=why):
        storable_change(change)


async def test_names_and_values_are_nothing_but_data(filled: Any) -> None:
    hostile = "'; DROP TABLE broker_core.topics; --"
    await set_properties(
        filled,
        TopicName.parse("persistent://a/b/y"),
        PropertiesChange({hostile: hostile}, [f"{hostile}}}"]),
    )
    assert (await properties(filled))["y"] == {hostile: hostile}
