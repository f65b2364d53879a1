"""The declaration of an operation of the HTTP API, from which the router and the OpenAPI document are made."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from aiohttp import web

from broker_core.pipeline import QuestionText
from broker_core.servers.http.api.api_request import ApiRequest, Body, Schema
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.http_access import Right
from broker_core.service import Action

__all__ = ["CHANGE_PROBLEMS", "Body", "Handler", "HttpOperation", "Parameter", "Reply", "Right", "Schema"]

Handler: TypeAlias = Callable[[ApiRequest], Awaitable[web.StreamResponse]]

_TEXT: Final[Schema] = {"type": "string"}
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
#: The router's pattern of a placeholder: a part of any text. Without it, aiohttp takes none with braces.
_ANY_PART: Final = r"{\1:[^/]+}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation.

    ``read`` makes the value of the text and raises :exc:`ValueError` with what is wrong, in words that follow the name:
    ``must be ...``. A ``repeated`` one may be given several times; its value is a tuple. ``default`` is the value if it
    is left out. Parameters in the path are always required.
    """

    name: str
    description: str
    read: Callable[[str], Any] = str
    schema: Schema = field(default_factory=lambda: _TEXT)
    within: Literal["query", "header", "path"] = "query"
    required: bool = False
    repeated: bool = False
    default: Any = None
    example: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as the OpenAPI document describes it: ``content`` has the schema or model by media type.

    Errors have a common one. ``examples`` has an example by media type.
    """

    description: str
    content: Mapping[str, Schema | type[JsonObject]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # the description by name
    examples: Mapping[str, Any] = field(default_factory=dict)


#: The declared errors of changes besides the errors of all operations.
CHANGE_PROBLEMS: Final[Mapping[int, Reply]] = {
    501: Reply("The server has no catalogue of its own: the brokers behind it hold the topics."),
    507: Reply("The disk of the server is full; nothing was changed."),
}


@dataclass(frozen=True, slots=True)
class HttpOperation:
    """One method of one path. ``path`` is written as in OpenAPI: ``/v1/namespaces/{tenant}/{namespace}``.

    The tenant and the namespace of a path need no declaration; ``responses`` are the successes by status, and the
    operation's errors besides the common ones.
    """

    method: str
    path: str
    operation_id: str
    summary: str
    needs: Right
    handler: Handler
    responses: Mapping[int, Reply]
    description: str = ""
    tag: str = "topics"
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    #: The question of a request, if the operation is a listing.
    question: Callable[[web.Request], QuestionText] | None = None
    #: The kind of its change, for the audit log; ``None`` if it only reads.
    changes: Action | None = None

    def __post_init__(self) -> None:
        declared = {each.name for each in self.parameters if each.within == "path"} | {"tenant", "namespace"}
        for name in _PLACEHOLDER.findall(self.path):
            if name not in declared:
                raise ValueError(f"{self.operation_id}: {{{name}}} of its path is not declared")
        if self.changes is None and self.method in {"PUT", "PATCH", "DELETE"}:
            raise ValueError(f"{self.operation_id}: what it changes is not declared")
        if self.needs.action is not None and not self.has_namespace:
            raise ValueError(f"{self.operation_id}: there is no namespace to ask {self.needs} about")

    @property
    def route(self) -> str:
        """The path in the form of the router."""
        return _PLACEHOLDER.sub(_ANY_PART, self.path)

    @property
    def has_namespace(self) -> bool:
        """Whether its path names a namespace."""
        return "{tenant}/{namespace}" in self.path
