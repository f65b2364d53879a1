"""One stream of topics over HTTP, written as fast as its client reads."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Hashable
from functools import partial
from typing import Any, Final

from aiohttp import HttpVersion11, hdrs, web

from broker_core.access import Access, Asker, note_held
from broker_core.concurrency import EACH_EVENT, ended_within
from broker_core.memory import Permit, PermitError, permits_refused
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.events.event_text import (
    HEARTBEAT,
    ROWS,
    chunk_of,
    error_text,
    first_text,
    snapshot_text,
    watching_text,
)
from broker_core.servers.http.api.events.subscriber import Subscriber
from broker_core.servers.http.api.listing_problems import require_filtered, warning_headers, warning_members
from broker_core.servers.http.api.negotiation import VARY
from broker_core.service import ListingFeed

__all__ = ["EVENT_STREAM", "LAST_EVENT_ID", "stream_topics"]

EVENT_STREAM: Final = "text/event-stream"
LAST_EVENT_ID: Final = "Last-Event-ID"

#: Seconds between signs of life, and after which the credentials are looked at again.
_HEARTBEAT: Final = 15.0
_CREDENTIALS: Final = 30.0
#: Milliseconds after which a client that was cut off comes back: not all at once.
_RETRY: Final = 1000
_SPREAD: Final = 4000
#: The approximate bytes that wait in a transport, for which a stream holds permits while it writes nothing large.
_SLICE: Final = 16 * 1024
_HELD: Final = 32 * 1024


async def stream_topics(
    request: ApiRequest,
    question: ListingRequest,
    uncompiled: str | None,
) -> web.StreamResponse:
    """Answer with the topics of a question, and then with each change, until the client or the server goes away.

    Raises the errors of a listing, before anything is sent.
    """
    headers = {hdrs.CONTENT_TYPE: EVENT_STREAM, hdrs.VARY: VARY, "X-Accel-Buffering": "no"}
    services, namespace = request.services, question.namespace
    await services.pipeline.authorize(Access("list", namespace, None, request.asker), request.deadline)
    if request.http.method == hdrs.METH_HEAD:
        return web.Response(headers=headers)
    if uncompiled is not None:
        question = await services.pipeline.with_pattern(question, uncompiled)
    feeds = services.feeds
    assert feeds is not None
    last_id = request.http.headers.get(LAST_EVENT_ID)
    subscriber = Subscriber(request.asker, lags=last_id is None)
    with services.admission.stream(_client(request.asker), subscriber.close):
        permit = await _permit(request, _HELD)
        try:
            feed = await feeds.join(question, subscriber, last_id)
            try:
                warnings = services.pipeline.warnings(
                    question, filtered=feed.filtered, topics=len(feed.selection or ())
                )
                require_filtered(request, warnings)
                stream = _TopicStream(request, feed, subscriber, warning_members(warnings))
                return await stream.run(headers | warning_headers(warnings))
            finally:
                feeds.leave(feed, subscriber)
        finally:
            permit.release()


async def _permit(request: ApiRequest, size: int) -> Permit:
    try:
        connection = request.asker.connection
        permit = await request.services.permits.direct.acquire(size, key=connection)
    except PermitError as error:
        raise permits_refused("direct", error) from None
    note_held(connection, permit)
    return permit


def _client(asker: Asker) -> Hashable:
    """The key by which streams are counted together: the role, or the address if there are no roles."""
    return asker.host if asker.role is None else (asker.role, asker.original_principal)


class _TopicStream:
    """The writing of one stream."""

    def __init__(
        self, request: ApiRequest, feed: ListingFeed, subscriber: Subscriber, more: dict[str, Any]
    ) -> None:
        """``more`` are members of the last event of all topics."""
        self._request = request
        self._more = more
        self._feed = feed
        self._subscriber = subscriber
        self._chunked = request.http.version >= HttpVersion11
        self._timeout = request.services.settings.pulsar.write_timeout
        self._loop = asyncio.get_running_loop()
        self._looked = self._loop.time()  # at the credentials
        self._written_period: float | None = -1.0  # of how changes are seen

    async def run(self, headers: dict[str, str]) -> web.StreamResponse:
        """Write until it is over; a client that lags for too long is cut off."""
        http, subscriber = self._request.http, self._subscriber
        response = web.StreamResponse(headers=headers)
        if self._chunked:
            response.enable_chunked_encoding()
        response.force_close()
        await response.prepare(http)
        await self._write(first_text(_RETRY + secrets.randbelow(_SPREAD)))
        while await self._is_still_admitted():
            await self._say_whether_it_watches()
            if subscriber.failure is not None:
                failure, subscriber.failure = subscriber.failure, None
                await self._write(error_text(failure, http))
            elif subscriber.ended is not None:
                await self._write(error_text(subscriber.ended, http))
                break
            elif subscriber.is_closed:
                break
            elif subscriber.lags:
                await self._write_all()
            elif (frame := subscriber.next()) is not None:
                await self._write_frame(frame)
            else:
                await self._wait()
        await response.write_eof()
        return response

    async def _wait(self) -> None:
        """Wait until there is something to write, or write a sign of life when it is time."""
        woken = self._subscriber.woken
        woken.clear()
        if not await ended_within(_HEARTBEAT, woken.wait()):
            await self._write(HEARTBEAT)

    async def _say_whether_it_watches(self) -> None:
        """Send whether changes are watched, at the begin and whenever that changes."""
        period = self._feed.period(self._request.asker)
        if period != self._written_period:
            self._written_period = period
            await self._write(watching_text(period))

    async def _is_still_admitted(self) -> bool:
        """Whether the credentials were good and of the same role a moment ago; reports to the client if not."""
        try:
            return await self._is_admitted()
        except Exception as error:  # noqa: BLE001 - whatever it is, the client has no more right to this
            await self._write(error_text(error, self._request.http))
            return False

    async def _is_admitted(self) -> bool:
        """Whether the role was the same a moment ago; raises the refusal of the credentials."""
        if self._loop.time() - self._looked < _CREDENTIALS:
            return True
        self._looked = self._loop.time()
        asker, own = await self._request.admitted_again(), self._request.asker
        return (asker.role, asker.original_principal) == (own.role, own.original_principal)

    async def _write_all(self) -> None:
        """Write all topics of this moment; changes meanwhile come after them."""
        feed, subscriber, request = self._feed, self._subscriber, self._request
        subscriber.begin_anew()
        selection, topics_hash, event_id = feed.selection, feed.topics_hash, feed.event_id
        extra = {"filtered": feed.filtered} | self._more
        assert selection is not None
        low = 0
        workers = request.services.pipeline.workers
        while True:
            high = min(low + ROWS, len(selection))
            size = 3 * selection.range(low, high).fields_size
            permit = await _permit(request, size)
            try:
                work = partial(snapshot_text, selection, low, topics_hash, extra, event_id)
                text = await workers.call(request.asker, work, EACH_EVENT * (high - low))
                await self._write(text)
            finally:
                permit.release()
            low = high
            if low >= len(selection) or subscriber.ended is not None or subscriber.is_closed:
                break
            if subscriber.is_suspended:
                return

    async def _write(self, text: bytes) -> None:
        await self._write_frame(chunk_of(text))

    async def _write_frame(self, frame: bytes) -> None:
        """Write a chunk of the body, in slices of which one at a time waits in the transport."""
        if not self._chunked:
            frame = frame[frame.index(b"\n") + 1 : -2]
        http = self._request.http
        view = memoryview(frame)
        while view:
            transport = http.transport
            if transport is None or transport.is_closing():
                raise ConnectionResetError("the client is gone")
            transport.write(bytes(view[:_SLICE]) if len(view) > _SLICE else view)
            view = view[_SLICE:]
            if http.protocol.writing_paused:
                await self._drain()

    async def _drain(self) -> None:
        http = self._request.http
        if not await ended_within(self._timeout, http.writer.drain()):
            self._request.services.metrics.connection_closed("stalled")
            raise ConnectionResetError("the client does not read")
        await self._check_slow_reader()

    async def _check_slow_reader(self) -> None:
        """Cut a client off that is refused now, in the middle of an event, which it might read for hours."""
        with contextlib.suppress(Exception):  # as above
            if await self._is_admitted():
                return
        raise ConnectionResetError("the client may not read any more") from None
