"""``/v1/server``: the state of a server for operators: plugins, questions, memory, and problems."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from aiohttp import web
from prometheus_client import CollectorRegistry
from pydantic import ConfigDict, Field

from broker_core.errors import Cause, ListingFailed
from broker_core.memory import CacheState, PermitBudget
from broker_core.metrics import INTERVAL
from broker_core.pipeline import QuestionCount
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import shown_first
from broker_core.servers.http.api.json_object import JsonObject, json_response, time_text
from broker_core.servers.http.api.operation import Handler, HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.parameters import MOST_ITEMS, limit_parameter, one_of
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.frequent_questions import allowed_questions, question_record
from broker_core.service import FollowedQuestion

__all__ = ["operations"]

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


class _QuestionFields(JsonObject):
    namespace: str
    mode: str
    pattern: str | None
    properties: dict[str, str]


class _Question(_QuestionFields):
    count: int = Field(description="How often it was asked, at most `error` too high.")
    error: int
    seconds: float = Field(description="Seconds that all its answers took.")
    mean_ms: float
    last_asked: str = Field(json_schema_extra={"format": "date-time"})


class _Questions(JsonObject):
    items: list[_Question]
    total: int = Field(description="How many are known, shown or not.")


class _Followed(_QuestionFields):
    watchers: int = Field(description="Topic list watchers of Pulsar clients (PIP-145).")
    streams: int = Field(description="Event streams over HTTP.")
    behind: int = Field(description="Watchers and streams that may not have been sent all changes yet.")
    topics: int | None = Field(description="The names that are listed; null before the first answer.")
    period_s: float | None = Field(
        description="The longest time until a change is reported; null: it is reported as it comes."
    )
    problem: str | None = Field(
        description="Why there is no answer now, so that clients stay with the topics that they have; null: nothing."
    )


class _FollowedQuestions(JsonObject):
    items: list[_Followed] = Field(
        description="The questions about namespaces in which the client may `monitor` and that gates let it list."
    )
    total: int = Field(description="The number of these questions, shown or not.")
    watchers: int = Field(description="Watchers of all namespaces; `streams` are of all, too.")
    streams: int
    enabled: bool = Field(description="Whether Pulsar clients may watch: `watchers.enabled`.")
    most_watchers: int = Field(description="How many may be open: `watchers.most`.")


class _Cache(JsonObject):
    name: str
    entries: int
    bytes: int
    limit_bytes: int | None = Field(description="Null: no limit.")


class _Caches(JsonObject):
    items: list[_Cache]


class _Check(JsonObject):
    level: Literal["ok", "warning", "error"]
    name: str = Field(description="The setting, or the part, that was looked at.")
    text: str


class _Checks(JsonObject):
    items: list[_Check]
    checked: str = Field(description="When, in UTC.", json_schema_extra={"format": "date-time"})


class _Budget(JsonObject):
    name: str
    used_bytes: int
    limit_bytes: int | None = Field(description="Null: no limit.")
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
        description="The samples of each value, the oldest first, at most 360; null for an unknown value. "
        "`cpu` is in cores, memory in bytes."
    )


_QUESTION_TEXT: Final[Mapping[str, Any]] = {
    "namespace": "acme/orders",
    "mode": "PERSISTENT",
    "pattern": "acme/orders/eu-.*",
    "properties": {},
}
_QUESTION: Final = {
    **_QUESTION_TEXT,
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
    "watchers": {
        "items": [
            {
                **_QUESTION_TEXT,
                "watchers": 12,
                "streams": 1,
                "behind": 0,
                "topics": 1500,
                "period_s": None,
                "problem": None,
            }
        ],
        "total": 1,
        "watchers": 12,
        "streams": 1,
        "enabled": True,
        "most_watchers": 100_000,
    },
    "caches": {"items": [{"name": "snapshots", "entries": 12, "bytes": 1048576, "limit_bytes": 268435456}]},
    "check": {
        "items": [{"level": "ok", "name": "pulsar.listen", "text": "127.0.0.1:6650 is free"}],
        "checked": "2026-11-28T04:00:00.000+00:00",
    },
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


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module. All need ``monitor`` in all namespaces."""

    def operation(
        name: str,
        summary: str,
        handler: Handler,
        content: type[JsonObject],
        *parameters: Parameter,
        problems: Mapping[int, Reply] | None = None,
    ) -> HttpOperation:
        return HttpOperation(
            "GET",
            f"/v1/server/{name}",
            f"showServer{name.capitalize()}",
            summary,
            Right.MONITOR_EVERYWHERE,
            handler,
            {
                200: Reply(
                    summary, {"application/json": content}, examples={"application/json": _EXAMPLES[name]}
                ),
                **(problems or {}),
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
            limit_parameter("Questions at the most.", 4096, 100),
        ),
        operation(
            "watchers",
            "The questions that clients follow, the most followed first; 403 without `http.questions`.",
            _watchers,
            _FollowedQuestions,
            limit_parameter("Questions at the most."),
        ),
        operation(
            "caches", "The caches of the server: how much they hold, and how much they may.", _caches, _Caches
        ),
        operation(
            "check",
            "What `broker-core check` says of the settings as they would be read now; asked once in 30 s at the most.",
            _check,
            _Checks,
            problems={404: Reply("A program gave the settings: there is nothing to read them from.")},
        ),
        operation("permits", "The memory that requests hold and wait for.", _permits, _Permits),
        operation("history", "The last hour, a sample every ten seconds.", _history, _History),
    ]


async def _plugins(request: ApiRequest) -> web.StreamResponse:
    return json_response(200, {"items": request.services.pipeline.dispatcher.describe_without_errors()})


async def _metrics(request: ApiRequest) -> web.StreamResponse:
    services, prefixes = request.services, request.values["name"]
    # On the event loop, which owns the metrics; rendering can be elsewhere.
    found = list(_samples(services.metrics.registry, prefixes))
    return await shown_first(request, _Samples(items=[], total=len(found)), found[:MOST_ITEMS])


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


def _check_shown(services: ApiServices) -> None:
    """Refuse to show clients' patterns and properties, if the settings forbid it."""
    if not services.http.questions and services.authenticator is not None:
        raise refused(
            403, "questions are not shown: set questions = true in the table [http] of the settings"
        )


async def _questions(request: ApiRequest) -> web.StreamResponse:
    services = request.services
    _check_shown(services)
    known = services.pipeline.questions.most_frequent()
    found = await allowed_questions(services.pipeline, known, request.asker)
    order = _ORDERS[request.values["order"]]
    first = sorted(found, key=order, reverse=True)[: request.values["limit"]]
    items = (
        question_record(each) | {"mean_ms": round(1000 * each.seconds / each.count, 3)} for each in first
    )
    return await shown_first(request, _Questions(items=[], total=len(found)), items)


async def _watchers(request: ApiRequest) -> web.StreamResponse:
    services = request.services
    _check_shown(services)
    known = [] if services.feeds is None else await services.feeds.followed()
    found = await allowed_questions(services.pipeline, known, request.asker)
    first = sorted(found, key=lambda each: each.followers.total(), reverse=True)[: request.values["limit"]]
    settings = services.settings.watchers
    content = _FollowedQuestions(
        items=[],
        total=len(found),
        watchers=sum(each.watchers for each in known),
        streams=sum(each.streams for each in known),
        enabled=settings.enabled,
        most_watchers=settings.most,
    )
    return await shown_first(request, content, map(_followed, first))


def _followed(question: FollowedQuestion) -> _Followed:
    return _Followed(
        namespace=question.namespace,
        mode=question.mode.name,
        pattern=question.topics_pattern,
        properties=dict(question.properties),
        watchers=question.watchers,
        streams=question.streams,
        behind=question.outdated,
        topics=question.topics,
        period_s=question.period,
        problem=question.problem,
    )


async def _caches(request: ApiRequest) -> web.StreamResponse:
    states = request.services.permits.caches.states()
    return (await asyncio.to_thread(_counted, states)).response()


def _counted(states: Mapping[str, CacheState]) -> _Caches:
    return _Caches(
        items=[
            _Cache(name=name, entries=state.entries, bytes=state.size(), limit_bytes=state.limit or None)
            for name, state in states.items()
        ]
    )


async def _check(request: ApiRequest) -> web.StreamResponse:
    check = request.services.check
    if check is None:
        raise refused(404, "a program gave the settings of this server: there is nothing to read them from")
    try:
        async with asyncio.timeout_at(request.deadline):
            checked = await check()
    except TimeoutError:
        raise ListingFailed("The check of the settings takes longer: ask again", cause=Cause.TIME) from None
    items = [_Check(level=each.level, name=each.name, text=each.text) for each in checked.found]
    return _Checks(items=items, checked=time_text(checked.at)).response()


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
