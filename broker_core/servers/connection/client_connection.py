"""One client's connection, whatever its protocol: the socket, the timers and the tasks.

The protocol decides what a command means (:mod:`~broker_core.servers.connection.command_handler`); here it is read and
its answer is written. A frame that does not parse, a frame over the limit and a silent peer (one that sends nothing, or
reads nothing of its answers) close a connection, and so may the protocol; nothing else that a client does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog

from broker_core.access import Client, Clients, RunningRequest
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import ConnectionPlace
from broker_core.servers.connection.answer_writer import AnswerWriter
from broker_core.servers.connection.command_handler import Awaited, Closing, CommandHandler, FrameSender, Job
from broker_core.servers.connection.command_queue import CommandQueue
from broker_core.servers.connection.large_answers import LargeAnswers
from broker_core.servers.connection.last_frame import LastFrame
from broker_core.servers.connection.server_load import ConnectionTasks, ServerLoad

__all__ = ["ClientConnection", "ConnectionContext", "ConnectionSettings"]

_log = structlog.get_logger(__name__)

#: Requests of one connection that may be under way at a time; more are refused one by one.
_MOST_REQUESTS: Final = 1000


class ConnectionSettings(Protocol):
    """The settings of a protocol's table that every connection needs: seconds, and bytes a second."""

    @property
    def keep_alive(self) -> float: ...
    @property
    def write_timeout(self) -> float: ...
    @property
    def min_write_rate(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """The parts that all connections of a server share. ``transport`` is the protocol's name."""

    settings: ConnectionSettings
    permits: Permits
    metrics: Metrics
    load: ServerLoad
    transport: str = "pulsar"
    #: The connections of all servers of a broker.
    clients: Clients = field(default_factory=Clients)
    answers: LargeAnswers = field(default_factory=LargeAnswers)


class ClientConnection(asyncio.Protocol):
    """The protocol of one connection, on the server's event loop.

    ``handler`` makes the handler of a client, from the client and the sender of frames that answer no command.
    ``place`` is given back when the connection is over. ``address`` is the client's, if that is not the other end of
    the socket: a proxy may be in between. ``in_order``: no command is handled while a request is under way, so that
    answers are in the order of the commands.
    """

    def __init__(
        self,
        context: ConnectionContext,
        handler: Callable[[Client, FrameSender], CommandHandler],
        place: ConnectionPlace,
        *,
        address: str = "",
        in_order: bool = False,
    ) -> None:
        self._context = context
        self._in_order = in_order
        self._make_handler = handler
        self._place = place
        self._loop = asyncio.get_running_loop()
        self._requests = ConnectionTasks(context.load)
        #: Replies that are known later, without a place among the requests; made with the first of them.
        self._awaited: ConnectionTasks | None = None
        self._holding = 0  # how many of these the commands that follow wait for
        self._last: LastFrame | None = None  # of a connection that ends
        self._handler: CommandHandler
        self._client: Client
        self._transport: asyncio.Transport
        self._queue: CommandQueue
        self._writer: AnswerWriter
        self._keep_alive: asyncio.TimerHandle
        self._address = address
        self._resting: asyncio.TimerHandle | None = None  # its client is to ask nothing

    # -- life of the connection -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        context = self._context
        settings = context.settings
        self._transport = transport
        if not self._address:
            peer = transport.get_extra_info("peername")
            self._address = str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else str(peer or "")
        self._client = context.clients.opened(
            context.transport, self._address, end=self._disconnect, buffered=self._buffered
        )
        self._writer = AnswerWriter(
            transport,
            context.permits,
            context.answers,
            settings.write_timeout,
            min_rate=settings.min_write_rate,
            cut=self._cut_slow,
            on_stalled=self._stalled,
            on_room=self._room,
        )
        sender = FrameSender(self._send, self._push, self._writer.has_unread)
        self._handler = self._make_handler(self._client, sender)
        self._queue = CommandQueue(
            transport,
            self._handler.splitter(),
            handle=self._handle,
            failed=self._failed,
            is_crowded=self._is_crowded,
            begin=self._writer.gather,
            end=self._writer.write_gathered,
            count=context.load.hold,
        )
        self._keep_alive = self._loop.call_later(settings.keep_alive, self._tick)
        self._place.idle, self._place.end = self._idle, self._make_place
        context.load.opened(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._context.load.closed(self)
        self._place.give_back()
        self._context.clients.closed(self._client)
        self._keep_alive.cancel()
        if self._resting is not None:
            self._resting.cancel()
        if self._last is not None:
            self._last.close()
        self._handler.closed()
        self._queue.close()
        self._writer.closed()
        self._requests.cancel()
        if self._awaited is not None:
            self._awaited.cancel()

    def pause_writing(self) -> None:
        self._writer.paused()

    def resume_writing(self) -> None:
        self._writer.resumed()
        # Not now: within this call of the transport, closing it would end the connection twice.
        if self._last is not None:
            self._loop.call_soon(self._last.left)
        elif self._handler.draining:
            self._loop.call_soon(self._close_if_drained)

    def drain(self) -> None:
        """Take no more requests, and close as soon as nothing is under way."""
        self._handler.draining = True
        self._close_if_drained()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _idle(self) -> float | None:
        """Seconds since the client has asked anything; ``None`` while it waits for anything."""
        awaits = len(self._requests) or self._handler.watches or self._resting is not None
        if awaits or not self._writer.is_idle:
            return None
        return self._client.idle

    def _make_place(self) -> None:
        """Close an idle connection, because another one needs its place."""
        self._close_for("places", "idle connection closed to make room for another")

    def _disconnect(self) -> None:
        """Close at once, at the operator's request."""
        self._close_for("operator", "client disconnected by the operator")

    def _buffered(self) -> int:
        """Bytes of commands that wait, and of answers."""
        return self._queue.size + self._writer.waiting_bytes

    def _cut_slow(self) -> None:
        """Close a slow reader, because other requests wait for the memory of its answer."""
        self._close_for("slow", "peer reads slowly while others wait for the memory of its answer")

    @property
    def unfinished(self) -> int:
        """Bytes of a frame that the peer has not ended."""
        return 0 if self._transport.is_closing() else self._queue.unfinished

    def drop_unfinished(self) -> None:
        """Close a peer that has not ended its frame, because others have whole ones; its bytes count no more."""
        self._close_for("buffers", "peer holds a frame unfinished while others have no room")
        self._queue.close()

    def _close_if_drained(self) -> None:
        if self._handler.draining and not self._requests and self._writer.is_idle:
            self._transport.close()

    def _close_for(self, reason: str, event: str | None, **values: object) -> None:
        """Close at once, counted and logged. ``reason`` is a label of the metrics."""
        was_open = not self._transport.is_closing()
        self._transport.abort()  # first: nothing that is said of it may be in the way
        if was_open and self._last is None:
            self._say_closed(reason, event, **values)

    def _say_closed(self, reason: str, event: str | None, **values: object) -> None:
        self._context.metrics.connection_closed(reason)
        if event is not None:
            log = _log.error if reason == "internal" else _log.info
            log(event, peer=self._address, client=self._handler.client, reason=reason, **values)

    def _close_as(self, closing: Closing) -> None:
        """Close as the handler says: at once, or with a last frame."""
        if not closing.last:
            self._close_for(closing.reason, closing.event, **closing.values)
            return
        self._last = LastFrame(
            self._transport,
            closing.last,
            send=self._writer.send,
            is_idle=lambda: self._writer.is_idle,
        )
        self._say_closed(closing.reason, closing.event, **closing.values)
        self._queue.close()
        self._requests.cancel()
        if self._awaited is not None:
            self._awaited.cancel()
        self._transport.resume_reading()  # to see the client's end

    def _stalled(self, seconds: float) -> None:
        self._close_for("stalled", "peer stopped reading or reads too slowly", seconds=round(seconds, 1))

    def _tick(self) -> None:
        """Ask a silent peer whether it is there, or close it, as its protocol says."""
        if self._transport.is_closing() or self._last is not None:
            return
        # While an answer is on its way, a question would come after it: a peer that takes none of it stalls.
        done = self._handler.tick(quiet=self._transport.is_reading() and self._writer.is_idle)
        if isinstance(done, Closing):
            self._close_as(done)
            return
        if done is not None:
            self._writer.send(done)
        self._keep_alive = self._loop.call_later(self._context.settings.keep_alive, self._tick)

    # -- bytes in ---------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._last is not None:
            self._last.received(len(data))
            return
        self._handler.has_received = True
        self._queue.feed(data)
        if self._queue.size and self._context.load.is_too_much(self._queue.size):
            self._close_for("buffers", "too much memory in incomplete frames")

    def _room(self) -> None:
        if not self._transport.is_closing():
            self._queue.go_on()
            self._handler.has_room()

    def _failed(self, error: Exception) -> None:
        """End the connection: the peer's bytes cannot be understood, or this server failed in an unknown state."""
        self._writer.write_gathered()  # earlier requests have their answers
        if self._handler.is_bad_frame(error):
            self._close_for("bad_frame", "bad frame", error=str(error)[:500])
        else:
            self._close_for("internal", "command failed", exc_info=error)

    # -- commands ---------------------------------------------------------------------------------------------

    def _handle(self, command: bytes) -> None:
        done = self._handler.handle(command)
        if done is None:
            return
        if isinstance(done, bytes):
            self._client.sent(len(done))
            self._writer.send(done)
        elif isinstance(done, Awaited):
            self._wait_for(done, len(command))
        elif isinstance(done, Closing):
            self._close_as(done)
        else:
            self._begin(done, len(command))

    def _is_crowded(self) -> bool:
        return (
            self._writer.is_crowded
            or self._holding > 0
            or self._resting is not None
            or (self._in_order and len(self._requests) > 0)
        )

    def _wait_for(self, awaited: Awaited, size: int) -> None:
        load = self._context.load
        if not load.has_room_for(size):
            self._close_for("buffers", "too much memory in commands under way")
            return
        if self._awaited is None:
            self._awaited = ConnectionTasks(load)
        self._holding += awaited.holds
        self._awaited.start(awaited.reply(), size, self._replied, awaited)

    def _replied(self, awaited: Awaited, task: asyncio.Task[bytes | Closing | None]) -> None:
        """Handle an awaited reply once it is known, unless the client is gone."""
        self._holding -= awaited.holds
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._failed_under_way(error)
            return
        if (reply := task.result()) is not None:
            self._send(reply)
        if not self._transport.is_closing() and self._last is None:
            self._queue.go_on()

    def _send(self, reply: bytes | Closing) -> None:
        if self._transport.is_closing() or self._last is not None:
            return
        if isinstance(reply, Closing):
            self._close_as(reply)
        else:
            self._writer.send(reply)

    def _push(self, frame: bytes) -> bool:
        gone = self._transport.is_closing() or self._last is not None or self._handler.draining
        return gone or self._writer.push(frame)

    def _begin(self, job: Job, size: int) -> None:
        """Answer a job at once if its answer is known and small, and there is room; else give it a place and a task."""
        try:
            small = job.small_answer()
            if small is not None and self._writer.send_answer_now(small):
                self._client.sent(len(small))
                job.release()
                return
            load = self._context.load
            if len(self._requests) < _MOST_REQUESTS and load.has_room_for(size) and load.slots.take():
                self._requests.start(self._answer(job, self._client.last), size, self._request_ended, job)
                return
            refusal = job.no_place()
        except Exception as error:
            known = job.refusal(error)
            if known is None:
                job.release()
                raise
            refusal = known
        job.release()
        self._send(refusal)

    async def _answer(self, job: Job, entry: RunningRequest | None) -> None:
        client = self._client
        if entry is not None:
            client.under_way[job] = entry
        try:
            answer = await job.answer()
            client.sent(answer.size)
            await self._writer.send_answer(answer, job.holds)
            if answer.rest > 0:
                self._resting = self._loop.call_later(answer.rest, self._rested)
        except Exception as error:
            refusal = job.refusal(error)
            if refusal is None:
                raise
            self._send(refusal)
        finally:
            job.release()
            client.answered(job)

    def _rested(self) -> None:
        self._resting = None
        if not self._transport.is_closing():
            self._queue.go_on()

    def _request_ended(self, job: Job, task: asyncio.Task[None]) -> None:
        self._context.load.slots.give_back()
        job.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed_under_way(error)
        if self._in_order and not self._transport.is_closing() and self._last is None:
            self._queue.go_on()
        self._close_if_drained()

    def _failed_under_way(self, error: BaseException) -> None:
        """Note that the client waits for an answer that can no longer be given."""
        self._close_for("internal", "request failed", exc_info=error)
