from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from broker_core.catalog import ListedNames, PreconditionFailed, TopicRecord
from broker_core.names import TopicName
from broker_core.names.topic_id import new_topic_id
from broker_core.servers.http.api.etag import EntityTags, check_conditions, topic_etag

X = TopicRecord(
    TopicName.parse("persistent://a/b/x"),
    new_topic_id(),
    ListedNames.parse("0-1"),
    {"k": "v", "a": "b"},
    datetime.now(UTC),
)


def test_each_content_has_its_tag() -> None:
    same = replace(X, properties={"a": "b", "k": "v"})
    others = [
        replace(X, listed=ListedNames.parse("0-2")),
        replace(X, listed=ListedNames.parse("*,0-1")),
        replace(X, properties={"k": "v"}),
        replace(X, properties={"k": "v,a", "": "b"}),
        replace(X, topic_id=new_topic_id()),
        replace(X, configs={"retention.ms": "5"}),
        replace(X, replication=3),
    ]
    assert topic_etag(same) == topic_etag(X)
    assert len({topic_etag(each) for each in [X, *others]}) == 8
    assert EntityTags(topic_etag(X)).matches(topic_etag(X))


@pytest.mark.parametrize(
    ("text", "strongly", "weakly"),
    [
        ("*", True, True),
        (" * ", True, True),
        ('"a"', True, True),
        ('W/"a"', False, True),
        ('"b", "a"', True, True),
        ('"b",W/"a" ,"c"', False, True),
        (', "b",,"a",', True, True),
        ('"b"', False, False),
        ('"A"', False, False),
    ],
)
def test_tags_are_compared(text: str, strongly: bool, weakly: bool) -> None:
    tags = EntityTags(text)
    assert (tags.matches('"a"'), tags.matches('"a"', weakly=True)) == (strongly, weakly)


def test_the_weak_tag_of_a_listing_is_compared_weakly() -> None:
    tag = 'W/"e4a876e3"'
    for text in (tag, '"e4a876e3"', f'"other",{tag}', "*"):
        assert EntityTags(text).matches(tag, weakly=True)
    assert not EntityTags('"E4a876e3"').matches(tag, weakly=True)
    assert not EntityTags(tag).matches(tag)


@pytest.mark.parametrize(
    ("text", "lone"),
    [('W/"a"', "a"), ('"a,b"', "a,b"), ('""', ""), ('"a","a"', None), ("*", None), ('"\udc80"', None)],
)
def test_a_lone_tag(text: str, lone: str | None) -> None:
    assert EntityTags(text).lone == lone


@pytest.mark.parametrize(
    "text", ["", " ", ",", " , ,", "a", '"a', '"a" "b"', '*, "a"', 'w/"a"', '"a"b"', "'a'"]
)
def test_what_is_no_list_of_tags(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        EntityTags(text)


def test_conditions() -> None:
    now, other, anything = EntityTags(topic_etag(X)), EntityTags('"other"'), EntityTags("*")
    for topic, if_match, if_none_match in (
        (X, None, None),
        (None, None, None),
        (X, now, None),
        (X, anything, None),
        (X, now, other),
        (X, None, other),
        (None, None, anything),
        (None, None, now),
    ):
        check_conditions(topic, if_match, if_none_match)
    for topic, if_match, if_none_match in (
        (X, other, None),
        (X, EntityTags(f"W/{topic_etag(X)}"), None),
        (None, anything, None),
        (None, now, None),
        (X, None, anything),
        (X, now, now),
        (X, None, EntityTags(f"W/{topic_etag(X)}")),
    ):
        with pytest.raises(PreconditionFailed):
            check_conditions(topic, if_match, if_none_match)
