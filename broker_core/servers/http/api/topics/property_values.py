"""``.../properties`` and ``.../properties/{key}`` of a namespace: the keys and their values, with counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web
from pydantic import Field

from broker_core.catalog import MAX_PROPERTIES_BYTES
from broker_core.listing import Details, Selection, count_texts, count_values, values_size
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import MAKING, HeldAnswer, filled, within_bytes
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.listing_problems import UNFILTERED, refused_parts_shown
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import MODE, PATTERN, PROPERTY, limit_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.listing_answer import answer_to

__all__ = ["operations"]

#: Copies of the values that are in memory at once while they are counted: taken, grouped, in order, and filtered.
_COPIES: Final = 4


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
    items: list[_Value] = Field(
        description="The most frequent values first: as many as `limit`, 1 MiB of them at the most, or one."
    )
    total: int = Field(description="How many values there are, shown or not.")
    listed: int = Field(description="How many names are listed, with any value or none.")


_EXAMPLE: Final = {
    "key": "region",
    "items": [{"value": "eu", "names": 2}, {"value": "us", "names": 1}],
    "total": 2,
    "listed": 3,
}


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    which = "Of the topics that `GET .../topics` lists, by `pattern`, `mode`, `property` and `unfiltered` as there."
    return [
        HttpOperation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/properties",
            "listProperties",
            "The properties that select topics of a listing, with how many have them.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _list_keys,
            {
                200: Reply(
                    "The properties; none if nothing selects.",
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
        HttpOperation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/properties/{key}",
            "listPropertyValues",
            "The values of a selecting property in a listing.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _list,
            {
                200: Reply(
                    "The values.", {"application/json": _Values}, examples={"application/json": _EXAMPLE}
                ),
                404: Reply("No topic is selected by this property, or nothing is known of it."),
            },
            description=f"{which} A topic may have a longer value than a question may ask for: properties of a topic "
            f"take up to {MAX_PROPERTIES_BYTES:,} bytes of JSON, those of a question up to `limits.property_bytes`.",
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
    async with HeldAnswer(request) as held:
        tables, listed = await _counted(request, held, request.services.pipeline.options.selecting_keys)
        return await held.write(partial(_rendered_keys, tables, listed))


def _rendered_keys(tables: Mapping[str, pa.Table | None], listed: int) -> bytes:
    items = [
        _Key(key=key, names=None, values=None)
        if table is None
        else _Key(key=key, names=pc.sum(table["count"]).as_py() or 0, values=len(table))
        for key, table in tables.items()
    ]
    items.sort(key=lambda each: (-(each.names or 0), each.key))
    return _Keys(items=items, listed=listed).json_line().encode()


async def _list(request: ApiRequest) -> web.StreamResponse:
    values = request.values
    key, keys = values["key"], request.services.pipeline.options.selecting_keys
    if key not in keys:
        known = f"known: {', '.join(sorted(keys))}" if keys else "there are none"
        raise refused(404, f"no topic is selected by the property {key!r:.100}; {known}")
    async with HeldAnswer(request) as held:
        tables, listed = await _counted(request, held, [key])
        if tables[key] is None:
            raise refused(404, f"nothing is known of the properties of these topics, {key!r:.100} among them")
        return await held.write(
            partial(_rendered, key, tables.pop(key), values["prefix"], values["limit"], listed)
        )


async def _counted(
    request: ApiRequest, held: HeldAnswer, keys: Collection[str]
) -> tuple[dict[str, pa.Table | None], int]:
    """The values of each property with their counts, ``None`` if unknown; and the number of listed names.

    Permits for them, and for an answer that is made of them, are held from then on.
    """
    async with refused_parts_shown(request, request.values["pattern"]):
        return await _counted_in(request, held, keys)


async def _counted_in(
    request: ApiRequest, held: HeldAnswer, keys: Collection[str]
) -> tuple[dict[str, pa.Table | None], int]:
    values, pipeline = request.values, request.services.pipeline
    question, uncompiled = request.question(values["mode"], values["pattern"], values["property"])
    answer = await answer_to(request, question, uncompiled)
    try:
        assert answer.selection is not None  # the question has no hash
        listed = answer.topics
        size = values_size(answer.selection, keys)
        await held.hold(_COPIES * size, of=answer)
        count = partial(_of_selection, answer.selection, keys)
        tables = await pipeline.workers.call(request.asker, count)
    finally:
        answer.release()
    if any(table is None for table in tables.values()):
        await held.hold(0)  # no answer is waited for with permits in hand
        detailed = await answer_to(request, replace(question, wants=frozenset({"properties"})), uncompiled)
        try:
            known = detailed.details
            size = (
                0 if known is None or "properties" not in known.columns else known.column("properties").nbytes
            )
            await held.hold(_COPIES * size, of=detailed)
            count = partial(_of_details, known, [key for key in keys if tables[key] is None])
            tables |= await pipeline.workers.call(request.asker, count)
        finally:
            detailed.release()
    await held.hold(size + min(MAKING, _COPIES * size))
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


def _rendered(key: str, table: pa.Table, prefix: str, limit: int, listed: int) -> bytes:
    if prefix:
        table = table.filter(pc.starts_with(table["value"], prefix))
    rows = (table.slice(number, 1).to_pylist()[0] for number in range(min(limit, len(table))))
    items, _ = within_bytes(_Value(value=row["value"], names=row["count"]) for row in rows)
    return filled(_Values(key=key, items=[], total=len(table), listed=listed), "items", items)
