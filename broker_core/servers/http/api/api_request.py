"""A request of the HTTP API as its handler gets it: the asker, the parameters' values, and the body."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self, TypeAlias

from aiohttp import HttpVersion11, hdrs, web
from pydantic import ConfigDict, ValidationError

from broker_core.access import Access, Asker
from broker_core.compact_json import read_json
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api import ListingRequest
from broker_core.redaction import quoted
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import Attempt

__all__ = [
    "ApiRequest",
    "Body",
    "RequestObject",
    "Schema",
    "awaits_leave",
    "check_body",
    "check_expectation",
    "read_pieces",
]


#: A JSON Schema (of OpenAPI 3.1), as plain values.
Schema: TypeAlias = Mapping[str, Any]

#: Seconds in which a client must send the next bytes of a body.
_TIMEOUT: Final = 15.0
_CONTINUE: Final = "100-continue"
#: The order in which one of several faults is reported: faults of values come after those of types.
_RANKS: Final[Mapping[str, int]] = {"extra_forbidden": -1, "unicode": 1, "value_error": 2}


@dataclass(frozen=True, slots=True)
class Body:
    """The body that an operation takes: the schema or model by media type, and the most bytes that it may have.

    A request with another ``Content-Type``, or none, is refused (415): a web page of another site cannot send these
    types without permission (CORS), which is never given. A body may have one of the ``encodings``
    (``Content-Encoding``): the operation itself decompresses it. ``examples`` has an example by media type.
    """

    content: Mapping[str, Schema | type[JsonObject]]
    most_bytes: int
    description: str = ""
    required: bool = True
    #: Whether a request of no bytes has a body too, if it has its type.
    may_be_empty: bool = False
    encodings: tuple[str, ...] = ()
    examples: Mapping[str, Any] = field(default_factory=dict)


class ApiRequest:
    """One request. ``values`` has the value of each parameter of the operation by name.

    ``deadline`` (loop time) is the end of the time for the answer, before it is written. ``asker.connection`` is one
    object for each HTTP connection. ``attempt`` is the change that it wants to make.
    """

    __slots__ = ("_admit", "asker", "attempt", "body", "deadline", "http", "services", "values")

    def __init__(
        self,
        http: web.Request,
        services: ApiServices,
        asker: Asker,
        values: Mapping[str, Any],
        body: Body | None = None,
        admit: Callable[[], Awaitable[Asker]] | None = None,
        attempt: Attempt | None = None,
    ) -> None:
        self.http = http
        self.attempt = attempt or Attempt(None)
        self._admit = admit
        self.body = body
        self.services = services
        self.asker = asker
        self.values = values
        self.deadline = asyncio.get_running_loop().time() + services.pipeline.options.time_budget

    def namespace(self) -> NamespaceName:
        """The namespace of the path. Raises :exc:`~broker_core.errors.ListingFailed` with the cause ``NAME``."""
        tenant, namespace = self.http.match_info["tenant"], self.http.match_info["namespace"]
        try:
            return NamespaceName(tenant, namespace)
        except InvalidName as error:
            raise ListingFailed(str(error), cause=Cause.NAME, reason="bad_namespace") from None

    def question(
        self,
        mode: Mode,
        pattern: str | None,
        properties: Sequence[tuple[str, str]],
        asker: Asker | None = None,
    ) -> tuple[ListingRequest, str | None]:
        """The question about the path's namespace, as :meth:`~broker_core.pipeline.Pipeline.question` gives it.

        ``asker`` asks in place of the client.
        """
        services = self.services
        return services.pipeline.question(
            services.settings.limits,
            asker or self.asker,
            self.namespace(),
            mode,
            pattern,
            properties,
            deadline=self.deadline,
        )

    async def admitted_again(self) -> Asker:
        """The asker by the credentials of the request as of now, for an answer that lasts.

        Raises the refusal of a request: they may have ended since.
        """
        return self.asker if self._admit is None else await self._admit()

    async def authorize(self, action: str, topic: TopicName | None = None) -> None:
        """Ask rules and gates about an action of :data:`~broker_core.access.asker.ACTIONS` in the path's namespace.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        access = Access(action, self.namespace(), topic, self.asker)
        await self.services.pipeline.authorize(access, self.deadline)

    def pieces(self) -> AsyncIterator[bytes]:
        """The body, piece by piece as it comes. Raises the errors 408 and 413."""
        assert self.body is not None, "the operation declares no body"
        return read_pieces(self.http, self.body)

    async def content(self) -> bytes:
        """The whole body. Raises the errors 408 and 413."""
        return b"".join([piece async for piece in self.pieces()])

    async def json(self) -> Any:
        """The body as JSON. Raises the errors 400, 408 and 413."""
        content = await self.content()
        try:
            return read_json(content)
        except (ValueError, RecursionError) as error:
            raise refused(400, f"the body is no JSON in UTF-8: {error}"[:300]) from None


def check_body(request: web.Request, body: Body | None) -> None:
    """Raise the error for a request whose body is not what its operation takes, before any of it is read."""
    if body is None:
        if request.body_exists:
            raise refused(400, f"{request.method} takes no body here")
        return
    if not request.body_exists and not body.may_be_empty:
        if body.required:
            raise refused(400, "the body is missing")
        return
    if hdrs.CONTENT_TYPE not in request.headers or request.content_type not in body.content:
        raise refused(415, f"the body must have the Content-Type {' or '.join(body.content)}")
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() not in {"identity", *body.encodings}:
        allowed = f" but {' or '.join(body.encodings)}" if body.encodings else ""
        raise refused(415, f"the body must have no Content-Encoding{allowed}")
    if (request.content_length or 0) > body.most_bytes:
        raise _too_large(body)


async def check_expectation(request: web.Request) -> None:
    """Raise the error 417 for any expectation but 100-continue, which :func:`read_pieces` answers.

    If a request is refused before, the client need not send its body.
    """
    if request.version >= HttpVersion11 and request.headers[hdrs.EXPECT].lower() != _CONTINUE:
        raise web.HTTPExpectationFailed


def awaits_leave(request: web.Request) -> bool:
    """Whether a client may wait for 100-continue: if it is refused, only the end of the connection shows that its next
    bytes are no body.
    """
    return hdrs.EXPECT in request.headers


async def _ask_for_it(request: web.Request) -> None:
    if request.version >= HttpVersion11 and awaits_leave(request):
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # nothing of the response itself


async def read_pieces(request: web.Request, body: Body) -> AsyncIterator[bytes]:
    """The body, piece by piece as it comes.

    Raises the error 413 if it is too large, and 408 for a client that sends nothing for some time.
    """
    await _ask_for_it(request)
    size = 0
    while True:
        try:
            async with asyncio.timeout(_TIMEOUT):
                piece = await request.content.readany()
        except TimeoutError:
            raise refused(408, f"nothing came of the body for {_TIMEOUT:.0f} seconds", Cause.TIME) from None
        if not piece:
            return
        size += len(piece)
        if size > body.most_bytes:
            raise _too_large(body)
        yield piece


def _too_large(body: Body) -> Exception:
    return refused(413, f"the body may have {body.most_bytes} bytes at the most")


class RequestObject(JsonObject):
    """The body of a request. It has no member that is not declared."""

    model_config = ConfigDict(extra="forbid")

    #: The texts about a member of a wrong type, by its name, and about a body that is no object ("").
    wrong: ClassVar[Mapping[str, str]]
    #: The text before errors of the body.
    prefix: ClassVar[str] = ""

    @classmethod
    def unknown(cls, names: Sequence[str]) -> str:
        """The text about undeclared members."""
        return f"unknown member {quoted(names[0])} of the body; known: {', '.join(cls.model_fields)}"

    @classmethod
    def read(cls, content: Any) -> Self:
        """The body that a client has sent as JSON. Raises the error 400."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False)
        fault = min(faults, key=lambda each: _RANKS.get(each["type"], 0))
        if fault["type"] == "extra_forbidden":
            detail = cls.unknown([str(each["loc"][0]) for each in faults if each["type"] == fault["type"]])
        elif fault["type"] == "value_error":
            detail = str(fault["ctx"]["error"])
        elif fault["type"] == "unicode":
            detail = fault["msg"]
        else:
            detail = cls.wrong[str(fault["loc"][0]) if fault["loc"] else ""]
        raise refused(400, cls.prefix + detail)
