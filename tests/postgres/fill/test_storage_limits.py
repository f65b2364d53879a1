from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.topic_record import MAX_PROPERTIES_BYTES, properties_text
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


def properties_of_bytes(size: int, each: dict[str, str]) -> dict[str, str]:
    """Properties of so many bytes of JSON: these, and one more."""
    rest = size - len(properties_text({**each, "rest": ""}).encode())
    return {**each, "rest": "v" * rest}


@pytest.mark.parametrize("column", ["properties", "configs"])
@pytest.mark.parametrize(
    "each",
    [
        {},
        {"é": '☃\n\x01"\\/\x7f'},
        # Takes a fifth more as jsonb.
        {str(number): "" for number in range(5_000)},
    ],
    ids=["one pair", "escapes", "many pairs"],
)
async def test_the_table_has_the_bound_of_the_catalogue_in_bytes_of_json(
    connection: Any, column: str, each: dict[str, str]
) -> None:
    insert = f"INSERT INTO broker_core.topics (namespace, local_name, {column}) VALUES ('a/b', $1, $2)"
    await connection.execute(
        insert, "fits", storable_properties(properties_of_bytes(MAX_PROPERTIES_BYTES, each))
    )
    larger = properties_of_bytes(MAX_PROPERTIES_BYTES + 1, each)
    with pytest.raises(asyncpg.CheckViolationError, match=f"{column}_are_an_object_of_strings"):
        await connection.execute(insert, "does-not", json.dumps(larger))


async def test_what_fits_as_jsonb_alone_was_always_taken(connection: Any) -> None:
    escaped = {"k": "\x01" * 60_000}
    assert (
        await connection.fetchval("SELECT broker_core.json_bytes($1::jsonb)", json.dumps(escaped)) > 360_000
    )
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, properties) VALUES ('a/b', 'x', $1)",
        json.dumps(escaped),
    )
