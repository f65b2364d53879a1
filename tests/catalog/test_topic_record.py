from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.topic_record import (
    MAX_PROPERTIES_BYTES,
    TopicRecord,
    check_properties,
    checked_text,
    properties_of,
    properties_text,
)
from broker_core.names import TopicName
from broker_core.names.listed_names import ListedNames

NAME = TopicName.parse("persistent://a/b/orders")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
PROPERTIES = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5)


def test_a_record_names_all_that_is_listed() -> None:
    record = TopicRecord(NAME, uuid.uuid4(), ListedNames.parse("*,0-1,5"), {}, NOW)
    assert list(record.names) == [
        "persistent://a/b/orders",
        "persistent://a/b/orders-partition-0",
        "persistent://a/b/orders-partition-1",
        "persistent://a/b/orders-partition-5",
    ]
    assert record.partitions == 6


@given(PROPERTIES)
def test_the_same_properties_are_the_same_text(properties: dict[str, str]) -> None:
    text = checked_text(properties)
    turned = dict(reversed(properties.items()))

    assert text == properties_text(turned)
    assert json.loads(text) == properties
    assert text == json.dumps(properties, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert properties_of(text) == properties
    assert check_properties(properties) == properties


def test_no_properties() -> None:
    assert properties_of(None) == properties_of("{}") == {}
    assert properties_text({}) == "{}"


def test_they_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        properties_of('{"a":"b"}')["a"] = "c"  # type: ignore[index]


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (["a"], "must be an object of strings, not a list"),
        ("a", "not a string"),
        (None, "not null"),
        ({"a": 1}, "the value of property 'a' must be a string, not a number"),
        ({"a": True}, "not a boolean"),
        ({"a": {"b": "c"}}, "not an object"),
        ({"a": "\ud800"}, "lone surrogate"),
        ({"a": "x" * MAX_PROPERTIES_BYTES}, f"at most {MAX_PROPERTIES_BYTES}"),
    ],
)
def test_what_cannot_be_properties_is_said(properties: object, said: str) -> None:
    with pytest.raises(CatalogError) as raised:
        check_properties(properties)
    assert said in str(raised.value)
