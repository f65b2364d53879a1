from __future__ import annotations

import pytest

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.names import NamespaceName
from broker_core_postgres.fill.storage_limits import first_too_long, longest_local_name, storable_properties

NAMESPACE = NamespaceName("a", "b")


def test_properties_have_one_text() -> None:
    assert storable_properties({"b": "2", "a": "é"}) == '{"a":"é","b":"2"}'
    assert storable_properties({"a": "\\u0000"}) == '{"a":"\\\\u0000"}'


@pytest.mark.parametrize("properties", [{"a": "\0"}, {"\0": "a"}], ids=["value", "key"])
def test_jsonb_holds_no_nul(properties: dict[str, str]) -> None:
    with pytest.raises(CatalogError, match="NUL"):
        storable_properties(properties)


def test_what_are_no_properties_is_refused() -> None:
    with pytest.raises(CatalogError, match="must be a string"):
        storable_properties({"a": 1})


def test_names_are_bounded_by_the_index() -> None:
    longest = longest_local_name(NAMESPACE)
    assert first_too_long(NAMESPACE, ["x" * longest, "é" * (longest // 2)]) is None
    assert first_too_long(NAMESPACE, ["x", "é" * (longest // 2) + "xx"]) == "é" * (longest // 2) + "xx"
