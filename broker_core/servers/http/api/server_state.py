"""``/v1/server``: plugins, metrics, questions, permits and the last hour of a server, for whoever watches it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from pydantic import ConfigDict, Field

from broker_core.memory.permit_budget import PermitBudget
from broker_core.metrics.frequent_questions import QuestionCount, question_record
from broker_core.metrics.history import INTERVAL
from broker_core.servers.http.allowed_questions import AllowedQuestions
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.operation import Handler, Operation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import number_parameter, one_of
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.json_responses import json_response

__all__ = ["operations"]

#: Samples of metrics that are shown at the most.
_MOST_SAMPLES: Final = 10_000
_ORDERS: Final[Mapping[str, Callable[[QuestionCount], float]]] = {
    "count": lambda question: question.count,
    "seconds": lambda question: question.seconds,
    "mean": lambda question: question.seconds / question.count,
}


class _Plugin(JsonObject):
    """A plugin, as `GET /plugins` has it."""

    model_config = ConfigDict(extra="allow")

    name: str
    order: int = Field(description="Its place in the chain, from 1 on.")
    state: str
    hooks: list[str]
    problems: list[str]


class _Plugins(JsonObject):
    items: list[_Plugin]


class _Sample(JsonObject):
    name: str
    type: str
    help: str
    labels: dict[str, str]
    value: float


class _Samples(JsonObject):
    items: list[_Sample]
    total: int = Field(description="How many there are, shown or not.")


class _Question(JsonObject):
    namespace: str
    mode: str
    pattern: str | None
    properties: dict[str, str]
    count: int = Field(description="How often it was asked, at most `error` too high.")
    error: int
    seconds: float = Field(description="What all its answers took.")
    mean_ms: float
    last_asked: str = Field(json_schema_extra={"format": "date-time"})


class _Questions(JsonObject):
    items: list[_Question]
    total: int = Field(description="How many are known, shown or not.")


class _Budget(JsonObject):
    name: str
    used_bytes: int
    limit_bytes: int | None = Field(description="Null: as much as there is.")
    waiting: int = Field(description="Requests that wait for memory of it.")
    most_waiting: int | None = Field(description="Requests that may wait; null: any number.")


class _Permits(JsonObject):
    items: list[_Budget]


class _History(JsonObject):
    interval_s: float = Field(description="Seconds between two samples.")
    until: str | None = Field(
        description="When the last one was taken, in UTC; null before the first one.",
        json_schema_extra={"format": "date-time"},
    )
    series: dict[str, list[float | None]] = Field(
        description="The samples of each value, the oldest first, at most 360; null where nothing was to be seen. "
        "`cpu` is in cores, memory in bytes."
    )


_QUESTION: Final = {
    "namespace": "acme/orders",
    "mode": "PERSISTENT",
    "pattern": "acme/orders/eu-.*",
    "properties": {},
    "count": 120,
    "error": 0,
    "seconds": 0.36,
    "mean_ms": 3.0,
    "last_asked": "2026-11-28T04:00:00+00:00",
}
_EXAMPLES: Final[Mapping[str, Any]] = {
    "plugins": {
        "items": [
            {
                "name": "postgres",
                "order": 1,
                "state": "breaker closed",
                "hooks": [],
                "problems": [],
                "calls": {},
            }
        ]
    },
    "metrics": {
        "items": [
            {
                "name": "broker_core_http_connections",
                "type": "gauge",
                "help": "Open connections of HTTP.",
                "labels": {},
                "value": 3.0,
            }
        ],
        "total": 1,
    },
    "questions": {"items": [_QUESTION], "total": 1},
    "permits": {
        "items": [
            {"name": "heap", "used_bytes": 0, "limit_bytes": 268435456, "waiting": 0, "most_waiting": 10000}
        ]
    },
    "history": {
        "interval_s": 10.0,
        "until": "2026-11-28T04:00:00.000+00:00",
        "series": {"listings_per_s": [12.0, 13.5], "listing_ms": [None, 0.8]},
    },
}


def operations(_services: ApiServices) -> list[Operation]:
    """The operations of this module. All need ``monitor`` in all namespaces."""

    def operation(
        name: str, summary: str, handler: Handler, content: type[JsonObject], *parameters: Parameter
    ) -> Operation:
        return Operation(
            "GET",
            f"/v1/server/{name}",
            f"showServer{name.capitalize()}",
            summary,
            Right.MONITOR_EVERYWHERE,
            handler,
            {
                200: Reply(
                    summary, {"application/json": content}, examples={"application/json": _EXAMPLES[name]}
                )
            },
            tag="server",
            parameters=parameters,
        )

    return [
        operation("plugins", "The plugins in the order of the chain, with their calls.", _plugins, _Plugins),
        operation(
            "metrics",
            "The metrics of `/metrics` as JSON.",
            _metrics,
            _Samples,
            Parameter(
                "name",
                "Only those whose names begin with this; may be repeated.",
                schema={"type": "array", "items": {"type": "string"}},
                repeated=True,
                example=["broker_core_http_"],
            ),
        ),
        operation(
            "questions",
            "The most frequent questions of clients, or the slowest of them; 403 without `http.questions`.",
            _questions,
            _Questions,
            Parameter(
                "order",
                "Which of them are first: those with the most answers, seconds in all, or seconds of an answer.",
                read=one_of(_ORDERS),
                schema={"type": "string", "enum": [*_ORDERS], "default": "count"},
                default="count",
            ),
            number_parameter("limit", "Questions at the most.", 1, 4096, 100),
        ),
        operation("permits", "The memory that requests hold and wait for.", _permits, _Permits),
        operation("history", "The last hour, a sample every ten seconds.", _history, _History),
    ]


async def _plugins(request: ApiRequest) -> web.StreamResponse:
    return json_response(200, {"items": request.services.pipeline.dispatcher.describe_without_errors()})


async def _metrics(request: ApiRequest) -> web.StreamResponse:
    services, prefixes = request.services, request.values["name"]
    # On the event loop: what they are read of is the loop's. Rendering is not.
    found = list(_samples(services.metrics.registry, prefixes))
    content = {"items": found[:_MOST_SAMPLES], "total": len(found)}
    return await asyncio.to_thread(json_response, 200, content)


def _samples(registry: CollectorRegistry, prefixes: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for family in registry.collect():
        for sample in family.samples:
            if prefixes and not sample.name.startswith(prefixes):
                continue
            yield {
                "name": sample.name,
                "type": family.type,
                "help": family.documentation,
                "labels": dict(sample.labels),
                "value": sample.value,
            }


async def _questions(request: ApiRequest) -> web.StreamResponse:
    services = request.services
    if not services.http.questions and services.authenticator is not None:
        raise refused(
            403, "questions are not shown: set questions = true in the table [http] of the settings"
        )
    known = services.pipeline.questions.most_asked()
    found = await AllowedQuestions(services.pipeline)(known, request.asker)
    order = _ORDERS[request.values["order"]]
    first = sorted(found, key=order, reverse=True)[: request.values["limit"]]
    return await asyncio.to_thread(partial(_rendered_questions, first, len(found)))


def _rendered_questions(first: list[QuestionCount], total: int) -> web.Response:
    items = [
        question_record(each) | {"mean_ms": round(1000 * each.seconds / each.count, 3)} for each in first
    ]
    return json_response(200, {"items": items, "total": total})


async def _permits(request: ApiRequest) -> web.StreamResponse:
    permits = request.services.permits
    budgets = (permits.heap, permits.direct, permits.reserve, permits.snapshots, permits.unkept)
    return _Permits(items=list(map(_budget, budgets))).response()


def _budget(budget: PermitBudget) -> _Budget:
    return _Budget(
        name=budget.name,
        used_bytes=budget.acquired,
        limit_bytes=budget.maximum or None,
        waiting=budget.queue_size,
        most_waiting=budget.queue_limit or None,
    )


async def _history(request: ApiRequest) -> web.StreamResponse:
    history = request.services.history
    found = {"interval_s": INTERVAL, "until": None, "series": {}} if history is None else history.values()
    until = found["until"]
    if until is not None:
        found["until"] = time_text(until)
    return await asyncio.to_thread(json_response, 200, found)
