"""Answers that show what clients stored: bounded in bytes, under permits from their making to their last byte.

How large one item is, is the choice of the client that stored it, so a number of items bounds no memory. An answer here
has as many items as :data:`MOST_BYTES` of JSON take, and one at least. Heap permits cover what it is made of, and then
its bytes until they are with the kernel; :func:`~broker_core.servers.http.api.body_writer.write_body` writes it, which
knows slow readers. The large answer of any other operation that reads is under permits once it is made
(:mod:`broker_core.servers.http.api.api`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Self, TypeAlias

from aiohttp import hdrs, web

from broker_core.compact_json import ascii_json
from broker_core.listing import BlockSize
from broker_core.memory import Permit, PermitError, permits_refused
from broker_core.pipeline import Answer
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody, write_body
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.negotiation import VARY

__all__ = [
    "MAKING",
    "MOST_BYTES",
    "HeldAnswer",
    "filled",
    "json_of",
    "shown_first",
    "within_bytes",
]

#: Bytes of JSON that the items of one answer take, unless the first one alone is larger.
MOST_BYTES: Final = 1024 * 1024
#: Bytes of memory in which such an answer is made: its items, their JSON, and what is encoded of it.
MAKING: Final = 4 * MOST_BYTES

_Item: TypeAlias = JsonObject | Mapping[str, Any] | str


def within_bytes(items: Iterable[_Item]) -> tuple[list[bytes], bool]:
    """The JSON of the first items, as many as one answer may show, and whether those are all."""
    shown: list[bytes] = []
    left = MOST_BYTES
    for item in items:
        content = json_of(item)
        left -= len(content) + 1
        if left < 0 and shown:
            return shown, False
        shown.append(content)
    return shown, True


def json_of(item: _Item) -> bytes:
    """The JSON of one of the items of an answer."""
    return ascii_json(item.content() if isinstance(item, JsonObject) else item).encode()


def filled(content: _Item, member: str, items: Iterable[bytes]) -> bytes:
    """The JSON of an object, with these items in its empty list ``member``; each item is JSON already."""
    begin, empty, end = json_of(content).partition(f'"{member}":[]'.encode())
    return b"".join((begin, empty[:-1], b",".join(items), b"]", end, b"\n"))


async def shown_first(
    request: ApiRequest, content: _Item, items: Iterable[_Item], *, member: str = "items"
) -> web.Response:
    """The answer of an object, with the first items in its empty list ``member``, as many as one answer may show."""
    body = await request.services.pipeline.workers.call(
        request.asker, lambda: filled(content, member, within_bytes(items)[0])
    )
    return web.Response(body=body, content_type="application/json")


class HeldAnswer:
    """An answer to one request and the heap permits for it, which the end of ``async with`` gives back.

    Raises :exc:`~broker_core.errors.TooManyRequests` if there are no permits.
    """

    def __init__(self, request: ApiRequest) -> None:
        self._request = request
        self._heap = request.services.permits.heap
        self._permit: Permit | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()

    async def hold(self, size: int, *, of: Answer | None = None) -> None:
        """Hold permits for so many bytes, in place of those that are held.

        If it is made ``of`` an answer of the pipeline, that one's permits are held too from now on, in place of it: two
        requests with permits of an answer each, that wait for more of them, would wait for each other.
        """
        key = self._request.asker.connection
        if of is not None and of.permit is not None and of.permit.budget is self._heap:
            self._release()
            self._permit, of.permit = of.permit, None
            size += self._permit.count
        try:
            if self._permit is None:
                self._permit = await self._heap.acquire(size, key=key)
            else:
                self._permit = await self._heap.update(self._permit, size, key=key)
        except PermitError as error:
            raise permits_refused("heap", error) from None

    async def write(self, make: Callable[[], bytes], microseconds: float = math.inf) -> web.StreamResponse:
        """Answer with the JSON that ``make`` gives, which a worker calls under the permits that are held.

        ``microseconds`` is about how long it takes.
        """
        request, workers = self._request, self._request.services.pipeline.workers
        content = await workers.call(request.asker, make, microseconds)
        await self.hold(len(content))
        return await self.write_made(content, {hdrs.CONTENT_TYPE: "application/json"})

    async def write_made(
        self, content: bytes, headers: dict[str, str], status: int = 200
    ) -> web.StreamResponse:
        """Answer with this body, for which permits are held."""
        request, block = self._request, BlockSize()
        headers = {hdrs.VARY: VARY} | headers
        pieces = _pieces(content, block)
        body = RenderedBody(headers[hdrs.CONTENT_TYPE], pieces, block, len(content), quick=True)
        return await write_body(
            request, body, headers, status=status, holds=lambda budget: budget is self._heap
        )

    def _release(self) -> None:
        if self._permit is not None:
            self._permit.release()


def _pieces(content: bytes, block: BlockSize) -> Iterator[memoryview]:
    left = memoryview(content)
    while left:
        piece, left = left[: block.bytes], left[block.bytes :]
        yield piece
