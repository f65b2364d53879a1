"""Names of topics: valid ones, errors of invalid ones, and partitions.

docs/reference/pulsar-behaviour.md#names-of-topics
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidName
from broker_core.names import MAX_NAME_BYTES, NamespaceName, TopicName
from broker_core.names.topic_name import check_local_name, topic_in_namespace
from tests.support.topics import local_names


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


def test_a_local_or_full_name_means_a_topic() -> None:
    assert str(topic_in_namespace(NamespaceName("a", "b"), "x")) == "persistent://a/b/x"
    assert (
        str(topic_in_namespace(NamespaceName("a", "b"), "non-persistent://a/b/x")) == "non-persistent://a/b/x"
    )
    with pytest.raises(InvalidName, match="not in namespace a/b"):
        topic_in_namespace(NamespaceName("a", "b"), "persistent://a/c/x")


@pytest.mark.parametrize(("length", "shown"), [(200, "/" * 200), (201, "/" * 200 + "…")])
def test_a_long_text_is_cut(length: int, shown: str) -> None:
    with pytest.raises(InvalidName) as raised:
        topic_in_namespace(NamespaceName("a", "b"), "/" * length)
    assert str(raised.value).startswith(f"Invalid topic name {shown!r}: ")
