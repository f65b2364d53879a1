"""``POST /v1/namespaces/{tenant}/{namespace}/explain``: one listing, and how it comes about."""

from __future__ import annotations

from typing import Annotated, Any, Final

from aiohttp import web
from pydantic import BeforeValidator, ConfigDict, Field

from broker_core.pipeline import explain
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import shown_first
from broker_core.servers.http.api.json_object import JsonObject, whole
from broker_core.servers.http.api.listing_problems import refused_parts_shown
from broker_core.servers.http.api.namespaces.question_as_client import (
    QuestionAsClient,
    body_of,
    read_question,
)
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices

__all__ = ["operations"]


class _Question(QuestionAsClient):
    names: Annotated[int, Field(ge=0, le=1000), BeforeValidator(whole)] = Field(
        default=0, description="How many of the names are shown, the first ones: 1 MiB of them at the most."
    )


class _Explanation(JsonObject):
    """Output of `broker-core explain --format json`, without the texts of plugins' errors and without `kafka`.

    Of a listing that fails it has `error`, `code` and `cause`.
    """

    model_config = ConfigDict(extra="allow")

    namespace: str
    mode: str
    topics_pattern: str | None
    properties: dict[str, str]
    asker: dict[str, str | None]
    pattern: dict[str, Any] | None
    page: dict[str, Any] | None
    wants: list[str]
    rules: list[dict[str, Any]]
    gates: list[dict[str, Any]]
    chain: list[dict[str, Any]]
    rest: list[dict[str, Any]]
    masks: list[dict[str, Any]]
    lister: str | None
    plan: str | None
    listed: int | None = None
    visible: int | None = None
    topics: int | None
    filtered: bool = False
    changed: bool = False
    stale_s: float | None = None
    topics_hash: str | None = None
    bytes: int | None = None
    next: str | None = None
    names: list[str] = Field(default=[], description="The first names, in the order of pages (`names`).")
    details: dict[str, Any] | None = None
    permits: Any = None
    kept: list[dict[str, str | None]] = Field(default=[])
    snapshot: dict[str, Any] | None = None
    watch_refused: str | None = None
    error: str = ""
    code: str = ""
    cause: str = ""
    plugin: str | None = None
    warnings: list[str]
    ms: float


_EXAMPLE: Final = {
    "pattern": "persistent://public/default/orders-.*",
    "mode": "persistent",
    "properties": {"region": "eu"},
    "as": {"role": "team-a", "address": "192.0.2.7"},
    "names": 10,
}


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    return [
        HttpOperation(
            "POST",
            "/v1/namespaces/{tenant}/{namespace}/explain",
            "explainListing",
            "Ask a listing as this client, and say how it came about and what its hash is.",
            Right.ADMIN,  # it names plugins and rules
            _explain,
            {200: Reply("The explanation, of a listing that fails too.", {"application/json": _Explanation})},
            tag="server",
            description="With `as` it is asked as another client, which needs the right `list` too and is in the audit "
            "log.",
            body=body_of(services, _Question, _EXAMPLE),
        )
    ]


async def _explain(request: ApiRequest) -> web.StreamResponse:
    sent = _Question.read(await request.json())
    async with refused_parts_shown(request, sent.pattern):
        question = await read_question(request, sent)
    report = _without_errors(await explain(request.services.pipeline, question, names=sent.names))
    names = report.pop("names", None)
    if names is None:
        return _Explanation(**report).response()
    return await shown_first(request, _Explanation(**report, names=[]), names, member="names")


def _without_errors(report: dict[str, Any]) -> dict[str, Any]:
    """The report without the texts of plugins' errors, which may have parts for the operator alone."""
    report.pop("detail", None)
    for steps in (report["gates"], report["chain"], report["masks"]):
        for step in steps:
            step.pop("error", None)
    for rest in report["rest"]:
        _without_errors({"gates": [], "masks": [], **rest})
    return report
