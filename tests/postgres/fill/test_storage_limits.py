from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.topic_record import MAX_PROPERTIES_BYTES
from broker_core.names import NamespaceName
from broker_core_postgres.fill.storage_limits import first_too_long, longest_local_name, storable_properties

NAMESPACE = NamespaceName("a", "b")
#: Bytes of jsonb for one pair with a key of one byte, besides its value.
_PAIR = 17


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


@pytest.mark.parametrize("column", ["properties", "configs"])
async def test_the_table_has_the_bound_of_the_catalogue_in_bytes_of_jsonb(
    connection: Any, column: str
) -> None:
    insert = f"INSERT INTO broker_core.topics (namespace, local_name, {column}) VALUES ('a/b', $1, $2)"
    longest = {"k": "v" * (MAX_PROPERTIES_BYTES - _PAIR)}
    await connection.execute(insert, "fits", json.dumps(longest))
    with pytest.raises(asyncpg.CheckViolationError, match=f"{column}_are_an_object_of_strings"):
        await connection.execute(insert, "does-not", json.dumps({"k": longest["k"] + "v"}))
