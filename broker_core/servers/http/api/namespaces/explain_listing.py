"""``POST /v1/namespaces/{tenant}/{namespace}/explain``: one listing, and how it comes about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from broker_core.errors import InvalidName
from broker_core.names import Mode
from broker_core.pipeline import explain
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Body, Operation, Reply, Right, Schema
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.json_responses import json_response
from broker_core.service import read_question

__all__ = ["operations"]

_QUESTION: Final[Schema] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "pattern": {"type": ["string", "null"], "description": "As of `GET .../topics`."},
        "mode": {
            "type": "string",
            "enum": [mode.name.lower() for mode in Mode],
            "default": "persistent",
            "description": "The domains whose topics are listed.",
        },
        "properties": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "What plugins are asked with.",
        },
    },
}
_REPORT: Final[Schema] = {
    "type": "object",
    "description": "What `broker-core explain --format json` prints, without the texts of plugins' errors and "
    "without `kafka`; of a listing that fails it has `error`, `code` and `cause`.",
    "required": ["namespace", "mode", "rules", "gates", "chain", "masks", "lister", "plan", "warnings", "ms"],
    "properties": {
        "topics": {"type": ["integer", "null"]},
        "topics_hash": {"type": "string"},
        "error": {"type": "string"},
    },
}
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
            {200: Reply("The explanation, of a listing that fails too.", {"application/json": _REPORT})},
            tag="server",
            body=Body(
                {"application/json": _QUESTION},
                most,
                "The question, as `GET .../topics` takes it by parameters.",
                examples={"application/json": _EXAMPLE},
            ),
        )
    ]


async def _explain(request: ApiRequest) -> web.StreamResponse:
    given = await request.json()
    pattern, mode, properties = _question(given)
    services = request.services
    question, uncompiled = read_question(
        services.pipeline,
        services.settings.limits,
        request.asker,
        request.namespace(),
        mode,
        pattern,
        list(properties.items()),
        deadline=request.deadline,
    )
    if uncompiled is not None:
        question = await services.pipeline.with_pattern(question, uncompiled)
    return json_response(200, _without_errors(await explain(services.pipeline, question)))


def _question(given: Any) -> tuple[str | None, Mode, Mapping[str, str]]:
    """Pattern, mode and properties of a body. Raises the error 400."""
    if not isinstance(given, dict):
        raise _bad("must be an object")
    unknown = sorted(set(given) - {"pattern", "mode", "properties"})
    if unknown:
        raise _bad(f"unknown member {unknown[0]!r:.100}; known: mode, pattern, properties")
    pattern, mode, properties = (
        given.get("pattern"),
        given.get("mode", "persistent"),
        given.get("properties", {}),
    )
    if not (pattern is None or isinstance(pattern, str)):
        raise _bad("pattern must be a string")
    if not isinstance(mode, str):
        raise _bad("mode must be a string")
    if not isinstance(properties, dict) or not all(isinstance(each, str) for each in properties.values()):
        raise _bad("properties must be an object whose values are strings")
    try:
        for text in (pattern or "", *properties, *properties.values()):
            text.encode()
        return pattern, Mode.parse(mode), properties
    except UnicodeEncodeError:
        raise _bad("a text is not valid Unicode (a lone surrogate)") from None
    except InvalidName as error:
        raise _bad(str(error)) from None


def _bad(detail: str) -> RequestRefused:
    return refused(400, f"the body: {detail}")


def _without_errors(report: dict[str, Any]) -> dict[str, Any]:
    """The report without the texts of plugins' errors, which may hold what is for the operator alone."""
    report.pop("detail", None)
    for steps in (report["gates"], report["chain"], report["masks"]):
        for step in steps:
            step.pop("error", None)
    for rest in report["rest"]:
        _without_errors({"gates": [], "masks": [], **rest})
    return report
