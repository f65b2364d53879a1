from __future__ import annotations

import pytest

from broker_core.catalog.errors import CatalogError
from broker_core.names import NamespaceName
from broker_core_postgres.fill.storage_limits import longest_name, storable_text, too_long

NAMESPACE = NamespaceName("a", "b")


def test_properties_have_one_text() -> None:
    assert storable_text({"b": "2", "a": "é"}) == '{"a":"é","b":"2"}'
    assert storable_text({"a": "\\u0000"}) == '{"a":"\\\\u0000"}'


@pytest.mark.parametrize("properties", [{"a": "\0"}, {"\0": "a"}], ids=["value", "key"])
def test_jsonb_holds_no_nul(properties: dict[str, str]) -> None:
    with pytest.raises(CatalogError, match="NUL"):
        storable_text(properties)


def test_what_are_no_properties_is_refused() -> None:
    with pytest.raises(CatalogError, match="must be a string"):
        storable_text({"a": 1})


def test_names_are_bounded_by_the_index() -> None:
    longest = longest_name(NAMESPACE)
    assert too_long(NAMESPACE, ["x" * longest, "é" * (longest // 2)]) is None
    assert too_long(NAMESPACE, ["x", "é" * (longest // 2) + "xx"]) == "é" * (longest // 2) + "xx"
