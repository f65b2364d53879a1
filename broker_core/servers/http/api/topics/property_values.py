"""``.../properties`` and ``.../properties/{key}`` of a namespace: which there are, and their values, with counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web
from pydantic import Field

from broker_core.listing import Details, Selection, count_texts, count_values
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.listing_warnings import UNFILTERED
from broker_core.servers.http.api.operation import Operation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import MODE, PATTERN, PROPERTY, limit_parameter
from broker_core.servers.http.api.pattern_problems import refused_parts_shown
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.whole_listing import answer_to

__all__ = ["operations"]

_LONGEST: Final = 1024


class _Key(JsonObject):
    key: str
    names: int | None = Field(
        description="How many names have it; of topics that plugins list, how many topics. Null: nothing is known."
    )
    values: int | None = Field(description="How many values there are.")


class _Keys(JsonObject):
    items: list[_Key] = Field(description="The properties that select topics, the most frequent first.")
    listed: int = Field(description="How many names are listed, with any property or none.")


class _Value(JsonObject):
    value: str
    names: int = Field(description="How many names have it; of topics that plugins list, how many topics.")


class _Values(JsonObject):
    key: str
    items: list[_Value] = Field(description="The most frequent values first.")
    total: int = Field(description="How many values there are, shown or not.")
    listed: int = Field(description="How many names are listed, with any value or none.")


_EXAMPLE: Final = {
    "key": "region",
    "items": [{"value": "eu", "names": 2}, {"value": "us", "names": 1}],
    "total": 2,
    "listed": 3,
}


def operations(_services: ApiServices) -> list[Operation]:
    """The operations of this module."""
    which = "Of the topics that `GET .../topics` lists, by `pattern`, `mode`, `property` and `unfiltered` as there."
    return [
        Operation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/properties",
            "listProperties",
            "The properties that select topics of a listing, with how many have them.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _list_keys,
            {
                200: Reply(
                    "The properties; none where nothing selects.",
                    {"application/json": _Keys},
                    examples={
                        "application/json": {
                            "items": [{"key": "region", "names": 3, "values": 2}],
                            "listed": 3,
                        }
                    },
                )
            },
            description=which,
            tag="namespaces",
            parameters=(PATTERN, MODE, PROPERTY, UNFILTERED),
        ),
        Operation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/properties/{key}",
            "listPropertyValues",
            "The values that the topics of a listing have of a property that selects.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _list,
            {
                200: Reply(
                    "The values.", {"application/json": _Values}, examples={"application/json": _EXAMPLE}
                ),
                404: Reply("No topic is selected by this property, or nothing is known of it."),
            },
            description=which,
            tag="namespaces",
            parameters=(
                Parameter("key", "The property.", within="path", example="region"),
                Parameter("prefix", "Only values that begin with this.", default="", example="e"),
                limit_parameter("Values at the most.", 1000, 100),
                PATTERN,
                MODE,
                PROPERTY,
                UNFILTERED,
            ),
        ),
    ]


async def _list_keys(request: ApiRequest) -> web.StreamResponse:
    pipeline = request.services.pipeline
    tables, listed = await _counted(request, pipeline.options.selecting_keys)
    return (await pipeline.workers.call(request.asker, partial(_rendered_keys, tables, listed))).response()


def _rendered_keys(tables: Mapping[str, pa.Table | None], listed: int) -> _Keys:
    items = [
        _Key(key=key, names=None, values=None)
        if table is None
        else _Key(key=key, names=pc.sum(table["count"]).as_py() or 0, values=len(table))
        for key, table in tables.items()
    ]
    return _Keys(items=sorted(items, key=lambda each: (-(each.names or 0), each.key)), listed=listed)


async def _list(request: ApiRequest) -> web.StreamResponse:
    values, pipeline = request.values, request.services.pipeline
    key, keys = values["key"], pipeline.options.selecting_keys
    if key not in keys:
        known = f"known: {', '.join(sorted(keys))}" if keys else "there are none"
        raise refused(404, f"no topic is selected by the property {key!r:.100}; {known}")
    tables, listed = await _counted(request, [key])
    table = tables[key]
    if table is None:
        raise refused(404, f"nothing is known of the properties of these topics, {key!r:.100} among them")
    shown = partial(_rendered, key, table, values["prefix"], values["limit"], listed)
    return (await pipeline.workers.call(request.asker, shown)).response()


async def _counted(request: ApiRequest, keys: Collection[str]) -> tuple[dict[str, pa.Table | None], int]:
    """The values of each property with their counts, ``None`` if unknown; and the number of listed names."""
    async with refused_parts_shown(request, request.values["pattern"]):
        return await _counted_in(request, keys)


async def _counted_in(request: ApiRequest, keys: Collection[str]) -> tuple[dict[str, pa.Table | None], int]:
    values, pipeline = request.values, request.services.pipeline
    question, uncompiled = request.question(values["mode"], values["pattern"], values["property"])
    answer = await answer_to(request, question, uncompiled)
    try:
        assert answer.selection is not None  # the question has no hash
        listed = answer.topics
        count = partial(_of_selection, answer.selection, keys)
        tables = await pipeline.workers.call(request.asker, count)
    finally:
        answer.release()
    if any(table is None for table in tables.values()):
        detailed = await answer_to(request, replace(question, wants=frozenset({"properties"})), uncompiled)
        try:
            count = partial(_of_details, detailed.details, [key for key in keys if tables[key] is None])
            tables |= await pipeline.workers.call(request.asker, count)
        finally:
            detailed.release()
    return tables, listed


def _of_selection(selection: Selection, keys: Collection[str]) -> dict[str, pa.Table | None]:
    return {key: count_values(selection, key) for key in keys}


def _of_details(details: Details | None, keys: Collection[str]) -> dict[str, pa.Table | None]:
    if details is None or "properties" not in details.columns:
        return {}
    properties = details.column("properties")
    if len(properties) and properties.null_count == len(properties):
        return {}  # of no topic
    found = {key: pc.map_lookup(properties, pa.scalar(key), "first") for key in keys}
    return {key: count_texts(texts.cast(pa.large_string())) for key, texts in found.items()}


def _rendered(key: str, table: pa.Table, prefix: str, limit: int, listed: int) -> _Values:
    if prefix:
        table = table.filter(pc.starts_with(table["value"], prefix))
    rows: list[dict[str, Any]] = table.slice(0, limit).to_pylist()
    items = [_Value(value=row["value"], names=row["count"]) for row in rows]
    return _Values(key=key, items=items, total=len(table), listed=listed)
