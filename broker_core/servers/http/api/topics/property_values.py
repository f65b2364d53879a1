"""``GET /v1/namespaces/{tenant}/{namespace}/properties/{key}``: the values that topics have, with counts."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web
from pydantic import Field

from broker_core.listing.details import Details
from broker_core.listing.property_counts import count_texts, count_values
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.listing_warnings import UNFILTERED
from broker_core.servers.http.api.operation import Operation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import MODE, PATTERN, PROPERTY, number_parameter
from broker_core.servers.http.api.pattern_problems import refused_parts_shown
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.whole_listing import answer_to

__all__ = ["operations"]

_LONGEST: Final = 1024


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
    """The operation of this module."""
    return [
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
            description="Of the topics that the client is listed, by `pattern`, `mode`, `property` and "
            "`unfiltered` as of `GET .../topics`.",
            tag="namespaces",
            parameters=(
                Parameter("key", "The property.", within="path", example="region"),
                Parameter("prefix", "Only values that begin with this.", default="", example="e"),
                number_parameter("limit", "Values at the most.", 1, 1000, 100),
                PATTERN,
                MODE,
                PROPERTY,
                UNFILTERED,
            ),
        )
    ]


async def _list(request: ApiRequest) -> web.StreamResponse:
    async with refused_parts_shown(request, request.values["pattern"]):
        return await _counted(request)


async def _counted(request: ApiRequest) -> web.StreamResponse:
    values, pipeline = request.values, request.services.pipeline
    key = values["key"]
    keys = pipeline.options.selecting_keys
    if key not in keys:
        known = f"known: {', '.join(sorted(keys))}" if keys else "there are none"
        raise refused(404, f"no topic is selected by the property {key!r:.100}; {known}")
    question, uncompiled = request.question(values["mode"], values["pattern"], values["property"])
    answer = await answer_to(request, question, uncompiled)
    try:
        assert answer.selection is not None  # the question has no hash
        listed = answer.topics
        table = await pipeline.workers.call(request.asker, partial(count_values, answer.selection, key))
    finally:
        answer.release()
    if table is None:
        detailed = await answer_to(request, replace(question, wants=frozenset({"properties"})), uncompiled)
        try:
            texts = partial(_of_details, detailed.details, key)
            table = await pipeline.workers.call(request.asker, texts)
        finally:
            detailed.release()
    if table is None:
        raise refused(404, f"nothing is known of the properties of these topics, {key!r:.100} among them")
    shown = partial(_rendered, key, table, values["prefix"], values["limit"], listed)
    return (await pipeline.workers.call(request.asker, shown)).response()


def _of_details(details: Details | None, key: str) -> pa.Table | None:
    if details is None or "properties" not in details.columns:
        return None
    texts = pc.map_lookup(details.column("properties"), pa.scalar(key), "first")
    return count_texts(texts.cast(pa.large_string()))


def _rendered(key: str, table: pa.Table, prefix: str, limit: int, listed: int) -> _Values:
    if prefix:
        table = table.filter(pc.starts_with(table["value"], prefix))
    rows: list[dict[str, Any]] = table.slice(0, limit).to_pylist()
    items = [_Value(value=row["value"], names=row["count"]) for row in rows]
    return _Values(key=key, items=items, total=len(table), listed=listed)
