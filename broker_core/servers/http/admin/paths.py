"""Declarations of the operations of the admin interface: paths and handlers, without words for people.

They are those of Pulsar's brokers, whose documentation describes them, and are no part of the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from broker_core.errors import Cause, InvalidName
from broker_core.names import NamespaceName
from broker_core.pipeline import QuestionText
from broker_core.servers.http.api.operation import Body, Handler, HttpOperation, Parameter, Right
from broker_core.servers.http.api.parameters import read_query
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.service import Action

__all__ = ["ADMIN", "LOOKUP", "declared", "first_values"]

ADMIN = "/admin/v2/"
LOOKUP = "/lookup/v2/"


def declared(
    method: str,
    path: str,
    handler: Handler,
    *,
    body: Body | None = None,
    question: Callable[[web.Request], QuestionText] | None = None,
    changes: Action | None = None,
) -> HttpOperation:
    """An operation whose handler asks for the rights; ``question`` is the question of a listing."""
    operation_id = "pulsarLookup" if path.startswith(LOOKUP) else "pulsarAdmin"  # a label of metrics
    parts = tuple(
        Parameter(name, "", within="path") for name in ("topic", "version") if f"{{{name}}}" in path
    )
    return HttpOperation(
        method,
        path,
        operation_id,
        "",
        Right.CREDENTIALS,
        handler,
        {},
        parameters=parts,
        body=body,
        question=question,
        changes=changes,
    )


def first_values(request: web.Request, operation: HttpOperation) -> Mapping[str, Any]:
    """The parameters of a query by name: the first of each, as a broker takes them, and none is unknown.

    Raises the errors 400 for a query that is not in UTF-8, and 412 for a path with a bad namespace.
    """
    if operation.has_namespace:
        try:
            NamespaceName(request.match_info["tenant"], request.match_info["namespace"])
        except InvalidName:
            raise refused(412, "Namespace name is not valid", Cause.NAME) from None
    try:
        return {name: texts[0] for name, texts in read_query(request).items()}
    except RequestRefused:
        raise refused(400, "The query is not in UTF-8", Cause.BAD_REQUEST) from None
