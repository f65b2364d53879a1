"""Writing the body of an answer: pieces made in threads, under permits, as fast as the client reads.

A small body (up to 64 KiB) is made and written at once, under permits of the reserve. A large one goes out in pieces,
each in slices of which one at a time waits in the transport. A piece that is made in less time than it costs to hand it
to a thread, as plain names are, is made on the event loop, in its turns; any other in a thread, while the one before it
is written. The memory of both is covered by direct permits: a slow reader has small pieces and none ahead, and so has
any reader if half of the permits are taken, so that hundreds of slow readers leave room for the answers of others. As
over the binary protocol, a peer that stalls for ``pulsar.write_timeout``, or reads the whole slower than
``pulsar.min_write_rate``, is cut off (:class:`~broker_core.servers.connection.ReaderPace`).

A body that cannot be completed is cut: the connection is closed without the end of its last chunk.
"""

from __future__ import annotations

import asyncio
import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog
from aiohttp import HttpVersion11, hdrs, web

from broker_core.concurrency import ON_LOOP, ended_within
from broker_core.listing import BLOCK, BlockSize
from broker_core.memory import SMALL_ANSWER, Permit, PermitBudget
from broker_core.servers.connection import LEAST_PIECE, LargeAnswer, ReaderPace, piece_for
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.negotiation import takes_gzip

__all__ = ["RenderedBody", "write_body"]

_log = structlog.get_logger(__name__)

#: Bytes of a piece for a reader that is slow, or whose speed is not known yet.
_LEAST_BLOCK: Final = 4 * LEAST_PIECE
#: Bodies with fewer bytes are not compressed.
_LEAST_GZIP: Final = 1024
#: The quickest level: names shrink by a tenth only with the slow ones, which take five times as long.
_GZIP_LEVEL: Final = 1

Piece = bytes | memoryview


@dataclass(slots=True)
class RenderedBody:
    """A body that is made as it is written: ``begin``, the ``pieces`` of about ``size`` bytes in all, ``end``.

    The pieces are made with ``block``, which gives the size of the next one. A body is ``quick`` if its first piece is
    made in some tens of microseconds.
    """

    content_type: str
    pieces: Iterator[Piece]
    block: BlockSize
    size: int
    begin: bytes = b""
    end: bytes = b""
    quick: bool = False


async def write_body(
    request: ApiRequest,
    body: RenderedBody,
    headers: dict[str, str],
    *,
    status: int = 200,
    holds: Callable[[PermitBudget], bool] = lambda _budget: False,
) -> web.StreamResponse:
    """Answer with this body. Returns when its last bytes are with the kernel.

    ``holds`` says whether it is made of memory of a budget, for which others may wait.

    Raises the errors of making the first piece, and :exc:`~broker_core.errors.TooManyRequests` if no permits are to be
    had: nothing is sent then. Later failures, and clients that do not read, end the connection.
    """
    headers = {hdrs.CONTENT_TYPE: body.content_type} | headers
    compress = None
    if body.size >= _LEAST_GZIP and hdrs.CONTENT_ENCODING not in headers and takes_gzip(request.http):
        compress = zlib.compressobj(_GZIP_LEVEL, wbits=31)
        headers[hdrs.CONTENT_ENCODING] = "gzip"
    if request.http.method == hdrs.METH_HEAD:
        return web.Response(status=status, headers=headers)
    source = _BodyPieces(body, compress)
    if body.size + len(body.begin) + len(body.end) <= SMALL_ANSWER:
        return await _write_small(request, source, headers, status)
    large = _LargeBody(request, source, holds)
    with request.services.answers.writing(large.answer):
        return await large.write(headers, status)


class _BodyPieces:
    """The pieces of a body from its begin to its end, compressed if need be; each is made by a call of :meth:`next`."""

    __slots__ = ("_made", "_seconds", "block", "made", "size")

    def __init__(self, body: RenderedBody, compress: zlib._Compress | None) -> None:
        self.size = body.size
        self.block = body.block
        self.made = 0  # bytes so far, before they are compressed
        self._made = self._make(body, compress)
        self._seconds = 0.0 if body.quick else math.inf  # of the processor that a byte of the last piece took

    @property
    def microseconds(self) -> float:
        """About how long the next piece takes, by the last one."""
        return self._seconds * self.block.bytes * 1e6

    def next(self) -> list[Piece] | None:
        """The next piece, in parts; ``None`` after the last one."""
        begun, made = time.thread_time(), self.made
        parts = next(self._made, None)
        self._seconds = (time.thread_time() - begun) / max(1, self.made - made)
        return parts

    def _make(self, body: RenderedBody, compress: zlib._Compress | None) -> Iterator[list[Piece]]:
        first: list[Piece] = [body.begin]  # with the first piece: nothing is known to be sent before
        for piece in body.pieces:
            yield from self._packed([*first, piece], compress)
            del piece  # the permits are for one piece: it goes before the next one is made
            first = []
        yield from self._packed([*first, body.end], compress, is_last=True)

    def _packed(
        self, parts: list[Piece], compress: zlib._Compress | None, *, is_last: bool = False
    ) -> Iterator[list[Piece]]:
        self.made += sum(map(len, parts))
        if compress is not None:
            parts = [compress.compress(part) for part in parts]
            if is_last:
                parts.append(compress.flush())
        if parts := [part for part in parts if len(part)]:
            yield parts

    def all(self) -> bytes:
        """The rest of the body."""
        return b"".join(part for parts in iter(self.next, None) for part in parts)


async def _write_small(
    request: ApiRequest, source: _BodyPieces, headers: dict[str, str], status: int
) -> web.StreamResponse:
    services = request.services
    content = await services.pipeline.workers.call(request.asker, source.all, 0)
    response = web.Response(status=status, body=content, headers=headers)
    permit = await _permit(request, services.permits.reserve, min(len(content), SMALL_ANSWER))
    try:
        await response.prepare(request.http)
        await response.write_eof()
        await _drain(request, services.settings.pulsar.write_timeout)
    finally:
        permit.release()
    return response


class _LargeBody:
    """A body that is written in pieces."""

    def __init__(
        self, request: ApiRequest, source: _BodyPieces, holds: Callable[[PermitBudget], bool]
    ) -> None:
        self._request = request
        self._source = source
        self._loop = asyncio.get_running_loop()
        self._direct = request.services.permits.direct
        pulsar = request.services.settings.pulsar
        self._started = self._loop.time()
        self._pace = ReaderPace(
            source.size, self._started, write_timeout=pulsar.write_timeout, min_rate=pulsar.min_write_rate
        )
        self.answer = LargeAnswer(self._pace, self._direct, _LEAST_BLOCK, holds, self._cut_slow)

    def _cut_slow(self) -> None:
        """Close a slow reader, because other requests wait for the memory of its answer."""
        request = self._request
        if request.http.transport is not None:
            request.http.transport.abort()
            request.services.metrics.connection_closed("slow")
            _log.info(
                "an HTTP client reads slowly while others wait for the memory of its answer",
                peer=request.asker.remote_address,
                client=request.asker.client_version,
            )

    async def write(self, headers: dict[str, str], status: int) -> web.StreamResponse:
        http = self._request.http
        least = await _permit(self._request, self._direct, _LEAST_BLOCK)
        ahead: asyncio.Task[tuple[list[Piece] | None, Permit | None]] | None = None
        permit: Permit | None = None
        try:
            parts, permit = await self._make()
            response = web.StreamResponse(status=status, headers=headers)
            chunked = http.version >= HttpVersion11
            if chunked:
                response.enable_chunked_encoding()
            else:
                response.force_close()
            await response.prepare(http)
            between = b""  # the end of the chunk before
            while parts is not None:
                ahead = self._loop.create_task(self._make()) if self._may_make_ahead() else None
                head = b"%s%x\r\n" % (between, sum(map(len, parts))) if chunked else b""
                await self._write_piece(head, parts)
                between = b"\r\n" if chunked else b""
                del parts
                _released(permit)
                permit = None
                parts, permit = await (self._make() if ahead is None else ahead)
                ahead = None
            if between:
                await self._write_slice(between)
            await response.write_eof()
            await _drain(self._request, self._pace.stall(self._loop.time()))
            return response
        finally:
            _released(permit)
            least.release()
            if ahead is not None:
                ahead.cancel()
                ahead.add_done_callback(_release_result)

    async def _make(self) -> tuple[list[Piece] | None, Permit | None]:
        """The next piece, and the permits that it takes besides the least."""
        seconds = self._loop.time() - self._started
        size = piece_for(self._source.made, seconds, _LEAST_BLOCK, BLOCK)
        self._source.block.bytes, permit = self.answer.piece(size)
        try:
            workers = self._request.services.pipeline.workers
            making = workers.call(self._request.asker, self._source.next, self._source.microseconds)
            return await making, permit
        except BaseException:
            _released(permit)
            raise

    def _may_make_ahead(self) -> bool:
        """Whether the peer reads so quickly that the next piece should be there when this one has left."""
        return self._source.block.bytes > _LEAST_BLOCK and self._source.microseconds > ON_LOOP

    async def _write_piece(self, head: bytes, parts: list[Piece]) -> None:
        for part in parts:
            view = memoryview(part)
            while view:
                size = self._pace.piece(self._loop.time())
                # Alone, the few bytes before a piece would be a packet, and wake the reader up for nothing else.
                await self._write_slice(b"".join((head, view[:size])) if head else view[:size])
                view, head = view[size:], b""

    async def _write_slice(self, data: Piece) -> None:
        http = self._request.http
        transport = http.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        transport.write(data)
        size = len(data)
        http.writer.output_size += size
        self.answer.wrote(size)
        if http.protocol.writing_paused:
            self.answer.waited()
            now = self._loop.time()
            self._pace.waits(now)
            await _drain(self._request, self._pace.stall(now))
            self._pace.goes_on(self._loop.time())
        await self.answer.turn()


def _released(permit: Permit | None) -> None:
    if permit is not None:
        permit.release()


def _release_result(made: asyncio.Task[tuple[list[Piece] | None, Permit | None]]) -> None:
    """Give back the permits of a piece that nobody waits for any more."""
    if not made.cancelled() and made.exception() is None:
        _released(made.result()[1])


async def _permit(request: ApiRequest, budget: PermitBudget, size: int) -> Permit:
    left = request.deadline - asyncio.get_running_loop().time()
    return await request.services.permits.of_answer(budget, size, left)


async def _drain(request: ApiRequest, seconds: float) -> None:
    """Wait until all that was written is with the kernel.

    Raises :exc:`ConnectionResetError`, which ends the connection, if the peer takes none of it in this time.
    """
    if not request.http.protocol.writing_paused:
        return
    if not await ended_within(seconds, request.http.writer.drain()):
        request.services.metrics.connection_closed("stalled")
        _log.info(
            "an HTTP client has stopped reading",
            peer=request.asker.remote_address,
            client=request.asker.client_version,
            seconds=round(seconds, 1),
        )
        raise ConnectionResetError("the client does not read")
