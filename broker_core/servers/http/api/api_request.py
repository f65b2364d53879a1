"""A request of the HTTP API as its handler gets it: the asker, and the values of the declared parameters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from broker_core.access import Access, Asker
from broker_core.compact_json import read_json
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.request_body import Body, read_pieces
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import Attempt

__all__ = ["ApiRequest"]


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
