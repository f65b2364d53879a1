"""The OpenAPI 3.1 document of an API, made from the declarations of its operations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from aiohttp import web

from broker_core.compact_json import ascii_json
from broker_core.names import MAX_NAMESPACE
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import schema_of
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.problem_details import PROBLEM_JSON, ProblemObject

__all__ = ["openapi_document", "openapi_operation"]

_PATH: Final = "/v1/openapi.json"
_ABOUT: Final = """\
Which topics of a namespace match, for the client that asks: the answers, rights, limits and errors are those of
Pulsar's binary protocol.

Each path with GET takes HEAD. Any other method of a path is answered with 405 and `Allow`, an unknown path with 404, a
parameter that is unknown, or given twice without need, with 400. Errors are problem details (RFC 9457) with the `cause`
that the binary protocol has. Bytes that are no request of HTTP, or whose head is too large or too slow, are answered
with 400, 408 or 431 before any operation, and the connection ends.

Every answer says `Cache-Control`. An answer that fails after its status was sent ends with the connection, never as if
it were whole. No answer has a header of CORS.
"""
_TAGS: Final[Mapping[str, str]] = {
    "topics": "Listings, and one topic.",
    "namespaces": "Namespaces, their counts and their changes.",
    "writes": "Changes of the catalogue of a server that is not before a cluster.",
    "access": "Kafka's users and ACLs. The rules of authorization are in the file of the settings.",
    "server": "How a listing comes about, the clients that are connected, and this document.",
}
_PROBLEM_SCHEMA: Final = {"$ref": "#/components/schemas/Problem"}
_PART: Final = {
    "type": "string",
    "pattern": "^[-=:.A-Za-z0-9_]+$",
    "minLength": 1,
    "maxLength": MAX_NAMESPACE,
}
_PART_EXAMPLES: Final = {"tenant": "public", "namespace": "default"}
#: The meanings of the errors that all operations have.
_ERRORS: Final[Mapping[int, str]] = {
    400: "The request is wrong: a name (NAME), the pattern (PATTERN), or something else (BAD_REQUEST).",
    401: "There are no credentials, or none that are accepted (UNAUTHENTICATED).",
    403: "This client may not do this here (DENIED), or nobody may (NOT_ALLOWED).",
    408: "Nothing came of the body for some time (TIME).",
    413: "The body is too large, or the answer would be too large (TOO_LARGE).",
    415: "The body has another `Content-Type` or `Content-Encoding` than the operation takes, or no type.",
    429: "A quota of the client is used up (QUOTA).",
    500: "The server failed (INTERNAL, CATALOG); its log says more.",
    502: "A plugin (PLUGIN) or the brokers behind the server (UPSTREAM) failed.",
    503: "The server has no place (QUEUE) or memory (PERMITS) for this now, or it stops (UNAVAILABLE).",
    504: "There was no answer in time (TIME).",
}
_ERROR_HEADERS: Final[Mapping[int, Mapping[str, Any]]] = {
    401: {
        "WWW-Authenticate": {
            "description": "The schemes that are accepted, one a header.",
            "schema": {"type": "string"},
            "required": True,
        }
    },
    **{
        key: {
            "Retry-After": {
                "description": "Seconds after which to ask again.",
                "schema": {"type": "integer", "minimum": 0},
                "required": True,
            }
        }
        for key in (429, 503)
    },
}
#: The scheme of each method of authentication.
_SCHEMES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "token": ("bearer", {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}),
    "basic": ("basic", {"type": "http", "scheme": "basic"}),
    "tls": ("mutualTLS", {"type": "mutualTLS"}),
}


def openapi_operation(operations: Iterable[HttpOperation], version: str) -> HttpOperation:
    """The operation that serves the document of these operations and itself."""

    @lru_cache(1)
    def text_for(methods: tuple[str, ...], *, anonymous: bool) -> str:
        described = openapi_document([*operations, operation], version, methods, anonymous=anonymous)
        return ascii_json(described) + "\n"

    async def document(request: ApiRequest) -> web.Response:
        services = request.services
        anonymous = bool(services.settings.authentication.anonymous_role)
        text = text_for(services.methods, anonymous=anonymous)
        return web.Response(text=text, content_type="application/json", headers={"Cache-Control": "no-cache"})

    operation = HttpOperation(
        "GET",
        _PATH,
        "openapi",
        "This document.",
        Right.NOTHING,
        document,
        {200: Reply("The OpenAPI document of this server.", {"application/json": {"type": "object"}})},
        tag="server",
    )
    return operation


def openapi_document(
    operations: Iterable[HttpOperation], version: str, methods: Collection[str], *, anonymous: bool = False
) -> dict[str, Any]:
    """The document as plain values.

    ``methods`` are the methods of authentication, of which a client must use one unless it may be ``anonymous``. If
    there are none, all clients are let in.
    """
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _operation(operation, authenticates=bool(methods))
        if methods and operation.needs is Right.NOTHING:
            described["security"] = []
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    components: dict[str, Any] = {
        "schemas": {"Problem": schema_of(ProblemObject)},
        "responses": {f"Error{status}": _error(status) for status in _ERRORS if status != 401 or methods},
    }
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "broker-core",
            "version": version,
            "summary": "Topic listings by plugins.",
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": paths,
        "components": components,
    }
    if methods:
        # A plugin that authenticates may know other schemes, and also gets this one.
        schemes = dict(_SCHEMES.get(method, _SCHEMES["token"]) for method in methods)
        components["securitySchemes"] = schemes
        document["security"] = [{name: []} for name in schemes] + ([{}] if anonymous else [])
    return document


def _error(status: int) -> dict[str, Any]:
    described: dict[str, Any] = {
        "description": _ERRORS[status],
        "content": {PROBLEM_JSON: {"schema": _PROBLEM_SCHEMA}},
    }
    if status in _ERROR_HEADERS:
        described["headers"] = _ERROR_HEADERS[status]
    return described


def _errors_of(operation: HttpOperation, *, authenticates: bool) -> list[int]:
    """The common errors that an operation may have."""
    left_out = set()
    if not authenticates:
        left_out.add(401)
    if operation.needs is Right.NOTHING:
        left_out |= {502, 504}  # it asks nobody
    if operation.body is None:
        left_out |= {408, 415}
    return [status for status in _ERRORS if status not in left_out]


def _operation(operation: HttpOperation, *, authenticates: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.operation_id,
        "summary": operation.summary,
        "tags": [operation.tag],
        "responses": {},
    }
    if operation.description:
        described["description"] = operation.description
    parameters = [_part(name) for name in _PART_EXAMPLES if f"{{{name}}}" in operation.path]
    parameters += [_parameter(each) for each in operation.parameters]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = {
            "required": operation.body.required,
            "description": operation.body.description or "The content.",
            "content": _content(operation.body.content, operation.body.examples),
        }
    described["responses"] = {
        str(status): _reply(status, each) for status, each in operation.responses.items()
    }
    for status in _errors_of(operation, authenticates=authenticates):
        described["responses"].setdefault(str(status), {"$ref": f"#/components/responses/Error{status}"})
    return described


def _part(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": _PART,
        "description": f"The {name}.",
        "example": _PART_EXAMPLES[name],
    }


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
        described["content"] = _content(content, reply.examples)
    if reply.headers:
        described["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in reply.headers.items()
        }
    return described


def _content(content: Mapping[str, Any], examples: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        media_type: {"schema": schema_of(schema)} for media_type, schema in content.items()
    }
    for media_type, example in examples.items():
        described[media_type]["example"] = example
    return described
