"""``POST /v1/namespaces/{tenant}/{namespace}/explain``: one listing, and how it comes about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from aiohttp import web
from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from broker_core.names import Mode
from broker_core.pipeline import explain
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, Text
from broker_core.servers.http.api.operation import Body, Operation, Reply, Right
from broker_core.servers.http.api.request_body import RequestObject
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import read_question

__all__ = ["operations"]


def _mode(value: Any) -> Mode:
    if not isinstance(value, str):
        raise PydanticCustomError("mode", "")
    return Mode.parse(value)


class _Question(RequestObject):
    prefix = "the body: "
    wrong = {  # noqa: RUF012 - not a field
        "": "must be an object",
        "pattern": "pattern must be a string",
        "mode": "mode must be a string",
        "properties": "properties must be an object whose values are strings",
    }

    pattern: Text | None = Field(default=None, description="As of `GET .../topics`.")
    mode: Annotated[
        Mode,
        PlainValidator(_mode),
        WithJsonSchema({"type": "string", "enum": [mode.name.lower() for mode in Mode]}),
    ] = Field(
        default=Mode.PERSISTENT,
        description="The domains whose topics are listed.",
        json_schema_extra={"default": "persistent"},
    )
    properties: dict[Text, Text] = Field(default={}, description="What plugins are asked with.")

    @classmethod
    def unknown(cls, names: Sequence[str]) -> str:
        return f"unknown member {min(names)!r:.100}; known: mode, pattern, properties"


class _Explanation(JsonObject):
    """What `broker-core explain --format json` prints, without the texts of plugins' errors and without `kafka`.

    Of a listing that fails it has `error`, `code` and `cause`."""

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
}
#: Bytes of a body besides those that its properties may have, each character written as six.
_MOST_PATTERN: Final = 64 * 1024


def operations(services: ApiServices) -> list[Operation]:
    """The operation of this module."""
    most = (
        _MOST_PATTERN + 6 * services.settings.limits.property_bytes + 8 * services.settings.limits.properties
    )
    return [
        Operation(
            "POST",
            "/v1/namespaces/{tenant}/{namespace}/explain",
            "explainListing",
            "Ask a listing as this client, and say how it came about and what its hash is.",
            Right.ADMIN,  # it names plugins and rules
            _explain,
            {200: Reply("The explanation, of a listing that fails too.", {"application/json": _Explanation})},
            tag="server",
            body=Body(
                {"application/json": _Question},
                most,
                "The question, as `GET .../topics` takes it by parameters.",
                examples={"application/json": _EXAMPLE},
            ),
        )
    ]


async def _explain(request: ApiRequest) -> web.StreamResponse:
    asked = _Question.read(await request.json())
    services = request.services
    question, uncompiled = read_question(
        services.pipeline,
        services.settings.limits,
        request.asker,
        request.namespace(),
        asked.mode,
        asked.pattern,
        list(asked.properties.items()),
        deadline=request.deadline,
    )
    if uncompiled is not None:
        question = await services.pipeline.with_pattern(question, uncompiled)
    return _Explanation(**_without_errors(await explain(services.pipeline, question))).response()


def _without_errors(report: dict[str, Any]) -> dict[str, Any]:
    """The report without the texts of plugins' errors, which may hold what is for the operator alone."""
    report.pop("detail", None)
    for steps in (report["gates"], report["chain"], report["masks"]):
        for step in steps:
            step.pop("error", None)
    for rest in report["rest"]:
        _without_errors({"gates": [], "masks": [], **rest})
    return report
