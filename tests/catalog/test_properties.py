from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.properties import (
    MAX_PROPERTIES_BYTES,
    check_properties,
    checked_text,
    properties_of,
    properties_text,
)

PROPERTIES = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=5)


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
