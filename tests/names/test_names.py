"""Names one at a time: what parses, what the errors say, partitions and system topics.

docs/reference/pulsar-behaviour.md#names-of-topics
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidName
from broker_core.names import (
    MAX_NAME_BYTES,
    MAX_PARTITION_INDEX,
    NON_PERSISTENT,
    PERSISTENT,
    Mode,
    NamespaceName,
    TopicName,
    check_local_name,
    is_system_topic,
    partition_index,
    partitioned_local_name,
)
from tests.support.topics import local_names


@pytest.mark.parametrize("text", ["public/default", "t/n", "a-b=c:d.e_F/0", "-/-", "./..", "T_1/N=2"])
def test_a_namespace_is_written_as_it_was_read(text: str) -> None:
    namespace = NamespaceName.parse(text)
    assert str(namespace) == text
    assert f"{namespace.tenant}/{namespace.namespace}" == text
    assert NamespaceName(namespace.tenant, namespace.namespace) == namespace


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected tenant/namespace"),
        ("public", "expected tenant/namespace"),
        ("t/cluster/n", "expected tenant/namespace"),
        ("t//n", "expected tenant/namespace"),
        ("persistent://t/n", "expected tenant/namespace"),
        ("/n", "the tenant '' must be"),
        ("t/", "the namespace '' must be"),
        ("t t/n", "the tenant 't t' must be"),
        ("t/ñ", "the namespace 'ñ' must be"),
        ("t/n\n", r"the namespace 'n\\n' must be"),
        ("t/٣", "must be"),
        ("t/n*", "must be"),
    ],
)
def test_what_is_no_namespace_says_why(text: str, says: str) -> None:
    with pytest.raises(InvalidName, match=says):
        NamespaceName.parse(text)


def test_building_a_namespace_checks_it_too() -> None:
    with pytest.raises(InvalidName):
        NamespaceName("a/b", "c")


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize(
    "local", ["a", "a b", "日本", "😀", "x\ny", "%2F", "-partition-0", ":", "a,b", "\\", "."]
)
def test_a_topic_is_written_as_it_was_read(domain: str, local: str) -> None:
    text = f"{domain}://t/n/{local}"
    topic = TopicName.parse(text)
    assert str(topic) == text
    assert (topic.domain, topic.namespace, topic.local) == (domain, NamespaceName("t", "n"), local)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected domain://tenant/namespace/topic"),
        ("t/n/x", "expected domain://tenant/namespace/topic"),
        ("persistent:/t/n/x", "expected domain://tenant/namespace/topic"),
        ("persistent://t/n", "expected domain://tenant/namespace/topic"),
        ("http://t/n/x", "Invalid topic domain 'http'"),
        ("Persistent://t/n/x", "Invalid topic domain"),
        ("topic://t/n/x", "Invalid topic domain"),
        ("persistent://t/n/", "the local name is empty"),
        ("persistent://t/n/a/b", "no '/'"),
        ("persistent://t/n/a\0b", "no NUL"),
        ("persistent://t/n/a\ud800", "lone surrogate"),
        ("persistent://t/n!/a", "namespace name"),
        ("persistent:///n/a", "the tenant"),
        ("persistent://t/n/" + "x" * (MAX_NAME_BYTES + 1), "32768 bytes, at most 32767"),
        ("persistent://t/n/" + "é" * 16_384, "32768 bytes, at most 32767"),
    ],
)
def test_what_is_no_topic_says_why(text: str, says: str) -> None:
    with pytest.raises(InvalidName, match=says) as caught:
        TopicName.parse(text)
    assert len(str(caught.value)) < 500


def test_the_longest_name_is_one() -> None:
    check_local_name("x" * MAX_NAME_BYTES)


@given(st.text())
def test_parsing_gives_a_name_or_says_that_it_is_none(text: str) -> None:
    try:
        topic = TopicName.parse(text)
    except InvalidName:
        return
    assert str(topic) == text


@given(local_names())
def test_what_can_be_generated_can_be_parsed(local: str) -> None:
    assert TopicName.parse(f"persistent://t/n/{local}").local == local


@pytest.mark.parametrize(
    ("local", "index"),
    [
        ("x-partition-4", 4),
        ("x-partition-0", 0),
        ("x-partition-10", 10),
        ("x-partition-2147483647", MAX_PARTITION_INDEX),
        ("a-partition-1-partition-2", 2),
        ("-partition--partition-5", 5),
        ("-partition-partition-5", 5),
        ("x-partition-2147483648", -1),
        ("x-partition-9999999999", -1),
        ("x-partition-10000000000", -1),
        ("x-partition--1", -1),
        ("x-partition-00", -1),
        ("x-partition-012", -1),
        ("x-partition- 12", -1),
        ("x-partition-12 ", -1),
        ("x-partition-12\n", -1),
        ("x-partition-1&", -1),
        ("x-partition-x", -1),
        ("x-partition-+1", -1),
        ("x-partition-", -1),
        ("x-partition-٣", -1),
        ("x-partition-₂", -1),
        ("tp1-partition-0-DLQ", -1),
        ("partition-0", -1),
        ("-partition-3", -1),
        ("-partition-", -1),
        ("x", -1),
    ],
)
def test_only_a_canonical_index_makes_a_partition(local: str, index: int) -> None:
    assert partition_index(local) == index
    topic = TopicName.parse(f"persistent://t/n/{local}")
    assert topic.partition == index
    if index < 0:
        assert partitioned_local_name(local) == local
        assert topic.partitioned_name is topic
    else:
        assert f"{partitioned_local_name(local)}-partition-{index}" == local
        assert str(topic.partitioned_name) == f"persistent://t/n/{partitioned_local_name(local)}"


@given(local_names(), st.integers(0, MAX_PARTITION_INDEX))
def test_any_topic_may_have_any_partition(local: str, index: int) -> None:
    partition = f"{local}-partition-{index}"
    assert partition_index(partition) == index
    assert partitioned_local_name(partition) == local


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("persistent://public/default/__change_events", True),
        ("persistent://public/default/__change_events-partition-0", True),
        ("persistent://public/default/__transaction_buffer_snapshot", True),
        ("persistent://public/default/__transaction_buffer_snapshot_segments-partition-7", True),
        ("persistent://public/default/__transaction_buffer_snapshot_indexes", True),
        ("persistent://public/default/orders-sub__transaction_pending_ack", True),
        ("persistent://public/default/orders-sub__transaction_pending_ack-partition-3", True),
        ("persistent://public/default/__transaction_pending_ack", True),
        ("non-persistent://public/default/__change_events", True),
        ("persistent://pulsar/system/transaction_coordinator_assign-partition-0", True),
        ("persistent://pulsar/system/transaction_coordinator_assigned", True),
        ("persistent://pulsar/system/__transaction_log_0", True),
        ("persistent://public/default/not_really__change_events", False),
        ("persistent://public/default/__change_events-diff-suffix", False),
        ("persistent://public/default/__change_events-partition-00", False),
        ("persistent://public/default/__transaction_log_0", False),
        ("persistent://public/default/__compaction", False),
        ("non-persistent://pulsar/system/transaction_coordinator_assign", False),
        ("persistent://pulsar/system/__transaction_log", False),
        ("persistent://public/default/x", False),
    ],
)
def test_the_topics_that_brokers_keep_for_themselves(name: str, *, system: bool) -> None:
    topic = TopicName.parse(name)
    assert topic.is_system is system
    assert is_system_topic(topic.domain, topic.namespace, topic.local) is system


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("persistent", Mode.PERSISTENT),
        ("PERSISTENT", Mode.PERSISTENT),
        ("non-persistent", Mode.NON_PERSISTENT),
        (" NON_PERSISTENT ", Mode.NON_PERSISTENT),
        ("All", Mode.ALL),
    ],
)
def test_modes_are_read_in_any_spelling(text: str, mode: Mode) -> None:
    assert Mode.parse(text) is mode


@pytest.mark.parametrize("text", ["", "both", "0", "persistent://"])
def test_what_is_no_mode_says_which_there_are(text: str) -> None:
    with pytest.raises(InvalidName, match="one of persistent, non-persistent, all"):
        Mode.parse(text)


def test_a_mode_lists_its_domains() -> None:
    assert [mode.lists(PERSISTENT) for mode in Mode] == [True, False, True]
    assert [mode.lists(NON_PERSISTENT) for mode in Mode] == [False, True, True]
    assert not any(mode.lists("topic") for mode in Mode)
    assert [mode.value for mode in Mode] == [0, 1, 2]


def test_names_are_values() -> None:
    one, same = TopicName.parse("persistent://t/n/a"), TopicName.parse("persistent://t/n/a")
    assert one == same
    assert len({one, same}) == 1
    assert one < TopicName.parse("persistent://t/n/b")
    with pytest.raises(AttributeError):
        one.local = "b"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "base", "index"),
    [
        ("a", "a", -1),
        ("a-partition-0", "a", 0),
        ("a-partition-1-partition-2", "a-partition-1", 2),
        ("orders-partition-007", "orders-partition-007", -1),
        ("orders-partition-", "orders-partition-", -1),
        ("-partition-0", "-partition-0", -1),
        ("a-partition-2147483647", "a", 2147483647),
        ("a-partition-2147483648", "a-partition-2147483648", -1),
    ],
)
def test_a_name_is_a_partition_only_with_a_canonical_index(name: str, base: str, index: int) -> None:
    assert TopicName.split_local(name) == (base, index)
