"""The OpenAPI 3.1 document of an API, made from the declarations of its operations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from broker_core.errors import Cause
from broker_core.names.namespace_name import MAX_NAMESPACE
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Operation, Parameter, Reply, Right
from broker_core.servers.http.api.problem_details import PROBLEM_JSON

__all__ = ["openapi_document", "openapi_operation"]

_PATH: Final = "/v1/openapi.json"
_PROBLEM: Final = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "const": "about:blank"},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "cause": {
            "type": "string",
            "enum": [cause.name for cause in Cause],
            "description": "Why, in the words of all transports of the server.",
        },
    },
}
_PROBLEM_SCHEMA: Final = {"$ref": "#/components/schemas/Problem"}
_PART: Final = {
    "type": "string",
    "pattern": "^[-=:.A-Za-z0-9_]+$",
    "minLength": 1,
    "maxLength": MAX_NAMESPACE,
}
#: The errors that every operation may have.
_ERRORS: Final = (400, 401, 403, 500, 503, 504)
_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "basic": {"type": "http", "scheme": "basic"},
    "mutualTLS": {"type": "mutualTLS"},
}


def openapi_operation(operations: Iterable[Operation], version: str, *, authenticates: bool) -> Operation:
    """The operation that serves the document of these operations and itself."""

    async def document(_request: ApiRequest) -> web.Response:
        return web.Response(text=text, content_type="application/json", headers={"Cache-Control": "no-cache"})

    operation = Operation(
        "GET",
        _PATH,
        "openapi",
        "This document.",
        Right.NOTHING,
        document,
        {200: Reply("The OpenAPI document of this server.", {"application/json": {"type": "object"}})},
        tag="server",
    )
    described = openapi_document([*operations, operation], version, authenticates=authenticates)
    text = json.dumps(described) + "\n"
    return operation


def openapi_document(operations: Iterable[Operation], version: str, *, authenticates: bool) -> dict[str, Any]:
    """The document as plain values. ``authenticates`` says whether clients must have credentials."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation)
        if authenticates and operation.needs is Right.NOTHING:
            described["security"] = []
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "broker-core",
            "version": version,
            "description": "Which topics of a namespace match, for whom.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Problem": _PROBLEM},
            "responses": {
                f"Error{status}": {
                    "description": HTTPStatus(status).phrase,
                    "content": {PROBLEM_JSON: {"schema": _PROBLEM_SCHEMA}},
                }
                for status in _ERRORS
            },
            "securitySchemes": _SECURITY,
        },
    }
    if authenticates:
        document["security"] = [{name: []} for name in _SECURITY]
    return document


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": {},
    }
    if operation.description:
        described["description"] = operation.description
    parameters = [_part(name) for name in ("tenant", "namespace") if f"{{{name}}}" in operation.path]
    parameters += [_parameter(each) for each in operation.parameters]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.body.required,
            "description": operation.body.description,
            "content": _content(operation.body.content),
        }
    described["responses"] = {
        str(status): _reply(status, each) for status, each in operation.responses.items()
    }
    for status in _ERRORS:
        described["responses"].setdefault(str(status), {"$ref": f"#/components/responses/Error{status}"})
    return described


def _part(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _PART, "description": f"The {name}."}


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {
        "name": parameter.name,
        "in": parameter.within,
        "description": parameter.description,
        "required": parameter.required or parameter.within == "path",
        "schema": dict(parameter.schema),
    }
    if parameter.repeated:
        described |= {"style": "form", "explode": True}
    if parameter.example is not None:
        described["example"] = parameter.example
    return described


def _reply(status: int, reply: Reply) -> dict[str, Any]:
    described: dict[str, Any] = {"description": reply.description}
    content = reply.content or ({PROBLEM_JSON: _PROBLEM_SCHEMA} if status >= 400 else {})
    if content:
        described["content"] = _content(content)
    if reply.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in reply.headers.items()
        }
    return described


def _content(content: Mapping[str, Any]) -> dict[str, Any]:
    return {media_type: {"schema": dict(schema)} for media_type, schema in content.items()}
