"""One client's connection: handshake, keep-alive, and each command to where it belongs.

Rules of closing: a frame that does not parse, a frame over the limit and a silent peer (one that sends nothing, or
reads nothing of its answers) close a connection; nothing else that a client does. A bad request is a ``CommandError``
with its request id, and the connection lives on. Request ids are the client's business: they may repeat, and nothing
here is keyed by them (Go uses one again for every retry).

PING is answered before any limit is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

import structlog

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, ResponseTooLarge, ServerError, TooManyRequests
from broker_core.errors.pulsar_codes import lookup_code
from broker_core.memory.ended_frames import let_go_of_cancelled
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.memory.permits import SMALL_ANSWER, Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Answer, Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import RequestSlots
from broker_core.servers.connection import AnswerWriter, CommandQueue
from broker_core.servers.pulsar.listing_command import read_listing_request
from broker_core.servers.pulsar.lookup_access import lookup_access
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.wire.pulsar import LOOKUP_COMMANDS, BaseCommand, FrameError, TooManyElements, commands

__all__ = ["ClientConnection", "Host"]

_log = structlog.get_logger(__name__)

#: Requests of one connection that may be under way at a time; more are refused one by one.
_MAX_REQUESTS: Final = 1000

#: Bytes of a command up to which its place is all that it takes; a longer one (its pattern may have megabytes) counts
#: together with the incomplete frames as long as it is under way.
_SMALL_COMMAND: Final = 4096

_TOO_MANY_LOOKUPS: Final = "Failed due to too many pending lookup requests"

#: Clients that read frames of any size; an unknown one has the limit. docs/reference/pulsar-behaviour.md#frame-limits
_WITHOUT_FRAME_LIMIT: Final = ("Pulsar-CPP-", "broker-core-")


class Host(Protocol):
    """What a connection knows of its server: what all connections of it share."""

    pipeline: Pipeline
    lookups: LookupService
    permits: Permits
    metrics: Metrics
    options: PulsarOptions
    identify: Callable[[Asker], Asker]
    frame_limit: int
    slots: RequestSlots
    tasks: set[asyncio.Task[None]]
    loop: asyncio.AbstractEventLoop

    def opened(self, connection: ClientConnection) -> None:
        """One more."""

    def closed(self, connection: ClientConnection) -> None:
        """One less."""

    def buffered(self, change: int) -> None:
        """A connection holds so many bytes more (or less) of frames that are incomplete, wait or are long."""

    def has_room_for(self, size: int) -> bool:
        """Whether a command of ``size`` bytes may be held while it is under way."""

    def buffered_too_much(self, size: int) -> bool:
        """Whether a connection that holds ``size`` bytes has to go: all hold too much, and it is a large part."""


class ClientConnection(asyncio.Protocol):
    """The protocol of one connection, on the server's event loop. ``gone`` is called when it is over."""

    def __init__(self, server: Host, gone: Callable[[], None]) -> None:
        self._server = server
        self._gone = gone
        self._options = server.options
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.Transport
        self._queue: CommandQueue
        self._writer: AnswerWriter
        self._asker: Asker | None = None  # known once the handshake is done
        self._peer_limit: int | None = server.frame_limit
        self._heard = True  # something came since the last tick of the keep-alive
        self._keep_alive: asyncio.TimerHandle
        self._address = ""
        self._draining = False
        self._writing: Answer | None = None  # a large one

    # -- life of the connection -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        server = self._server
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._address = str(ListenAddress(*peer[:2])) if isinstance(peer, tuple) else str(peer or "")
        self._writer = AnswerWriter(
            transport,
            server.permits,
            self._options.pulsar.write_timeout,
            min_rate=self._options.pulsar.min_write_rate,
            on_stalled=self._stalled,
            on_room=self._room,
        )
        self._queue = CommandQueue(
            transport,
            max_frame=server.frame_limit,
            max_elements=max(1000, self._options.limits.properties),
            handle=self._handle,
            bomb=self._refuse_bomb,
            failed=self._failed,
            is_crowded=lambda: self._writer.is_crowded,
            count=server.buffered,
        )
        self._keep_alive = server.loop.call_later(self._options.pulsar.keep_alive, self._tick)
        server.opened(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._server.closed(self)
        self._gone()
        self._keep_alive.cancel()
        self._queue.close()
        self._writer.closed()
        for task in self._tasks:
            task.cancel()

    def pause_writing(self) -> None:
        self._writer.paused()

    def resume_writing(self) -> None:
        self._writer.resumed()
        if self._draining:
            # Not now: within this call of the transport, closing it would end the connection twice.
            self._server.loop.call_soon(self._close_if_drained)

    def drain(self) -> None:
        """Take no more requests, and close as soon as nothing is under way."""
        self._draining = True
        self._close_if_drained()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def holds_slowly(self, budget: PermitBudget, now: float) -> float | None:
        """Seconds in which the peer has been slowly reading an answer whose memory is of ``budget``; else ``None``."""
        answer = self._writing
        if answer is None or answer.selection is None:
            return None
        leased = self._server.permits.leases.held(answer.selection.listing)
        if not (
            answer.permit is not None and answer.permit.count and answer.permit.budget is budget
        ) and not (isinstance(leased, Permit) and leased.budget is budget):
            return None
        return self._writer.waits_for(now)

    def make_room(self) -> None:
        """Close a peer that reads slowly, for others who wait for the memory of its answer."""
        self._close_for("slow", "peer reads slowly while others wait for the memory of its answer")

    def _close_if_drained(self) -> None:
        if self._draining and not self._tasks and self._writer.is_idle:
            self._transport.close()

    def _close_for(self, reason: str, event: str, **values: object) -> None:
        """Close at once, counted and logged. ``reason`` is a label of the metrics."""
        was_open = not self._transport.is_closing()
        self._transport.abort()  # first: nothing that is said of it may be in the way
        if was_open:
            self._server.metrics.connection_closed(reason)
            log = _log.error if reason == "internal" else _log.info
            log(event, peer=self._address, client=self._client, reason=reason, **values)

    def _stalled(self, seconds: float) -> None:
        self._close_for("stalled", "peer stopped reading or reads too slowly", seconds=round(seconds, 1))

    @property
    def _client(self) -> str:
        return self._asker.client_version if self._asker is not None else ""

    def _tick(self) -> None:
        """Keep-alive: ask a peer that was silent for one interval, close one that was silent for two."""
        if self._transport.is_closing():
            return
        if self._asker is None:
            self._close_for("handshake", "peer was silent", waiting_for="CONNECT")
            return
        if self._transport.is_reading() and self._writer.is_idle:
            if not self._heard:
                self._close_for("keep_alive", "peer was silent", waiting_for="PONG")
                return
            if self._asker.protocol_version >= 1:
                self._heard = False
                self._send(commands.ping())
        # Otherwise an answer is on its way, and a PING would come behind it: a peer that takes none of it stalls.
        self._keep_alive = self._server.loop.call_later(self._options.pulsar.keep_alive, self._tick)

    # -- bytes in ---------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._heard = True
        self._queue.feed(data)
        if self._queue.size and self._server.buffered_too_much(self._queue.size):
            self._close_for("buffers", "too much memory in incomplete frames")

    def _room(self) -> None:
        if not self._transport.is_closing():
            self._queue.go_on()

    def _failed(self, error: Exception) -> None:
        """What the peer sent cannot be understood; or this server failed, and nobody knows how far it came."""
        if isinstance(error, FrameError):
            self._close_for("bad_frame", "bad frame", error=str(error)[:500])
        else:
            self._close_for("internal", "command failed", exc_info=error)

    # -- commands ---------------------------------------------------------------------------------------------

    def _handle(self, command: BaseCommand) -> None:
        kind = command.type
        if kind == BaseCommand.PING:
            self._send(commands.pong())
        elif kind == BaseCommand.PONG or self._draining:
            pass  # hearing it was the point; and who drains leaves requests to the connection's end, which is retried
        elif kind == BaseCommand.GET_TOPICS_OF_NAMESPACE and self._asker is not None:
            self._list(command, self._asker)
        elif kind == BaseCommand.CONNECT:
            self._connect(command)
        elif self._asker is None:
            self._refuse(command, "Send CONNECT first")
        elif kind in LOOKUP_COMMANDS:
            self._look_up(command, self._asker)
        elif kind == BaseCommand.WATCH_TOPIC_LIST_CLOSE:
            self._send(commands.success(command.watchTopicListClose.request_id))
        elif kind == BaseCommand.WATCH_TOPIC_LIST:
            self._refuse(
                command, "Unable to create topic list watcher: this server has no watchers, ask again instead"
            )
        else:
            name = commands.command_name(kind)
            self._refuse(
                command,
                f"{name} belongs to a broker, and this server only answers lookups: send it to the broker that LOOKUP "
                "names",
            )

    def _connect(self, command: BaseCommand) -> None:
        connect = command.connect
        if self._asker is not None:
            self._refuse(command, "This connection is connected already")
            return
        if connect.proxy_to_broker_url:
            # Answered as if connected, the client would send its data here.
            self._refuse(command, "This server is no proxy: it does not pass connections on to brokers")
            return
        protocol_version = max(0, min(commands.PROTOCOL_VERSION, connect.protocol_version))
        self._asker = self._server.identify(
            Asker(
                remote_address=self._address,
                client_version=connect.client_version[:256],
                protocol_version=protocol_version,
            )
        )
        if self._asker.client_version.startswith(_WITHOUT_FRAME_LIMIT):
            self._peer_limit = None
        self._send(
            commands.connected(
                self._options.server_version,
                protocol_version=protocol_version,
                max_message_size=self._options.pulsar.max_message_size,
                feature_flags=self._server.lookups.feature_flags,
            )
        )

    def _refuse(self, command: BaseCommand, message: str) -> None:
        """Answer a command that has no place here; those without a request id cannot be answered and are dropped."""
        if commands.request_id_of(command) is not None or command.type == BaseCommand.CONNECT:
            self._send(commands.refuse(command, ServerError.NotAllowedError, message))

    def _refuse_bomb(self, bomb: TooManyElements) -> None:
        self._server.metrics.refused("bad_request")
        self._refuse(bomb.command, str(bomb))

    def _look_up(self, command: BaseCommand, asker: Asker) -> None:
        if self._take_slot():
            self._start(self._answer_lookup(command, asker))
        else:
            # MetadataError: for TooManyRequests and ServiceNotReady here, clients close the connection.
            # docs/reference/pulsar-behaviour.md#answers-that-close-a-connection
            self._send(commands.refuse(command, ServerError.MetadataError, _TOO_MANY_LOOKUPS))

    async def _answer_lookup(self, command: BaseCommand, asker: Asker) -> None:
        pipeline = self._server.pipeline
        deadline = self._server.loop.time() + pipeline.options.time_budget
        try:
            if pipeline.dispatcher.has_gates:
                await pipeline.authorize(lookup_access(command, asker), deadline)
            frame = await self._server.lookups.answer(command, asker)
            # Of another's making, so of any size: a schema has permits like a listing.
            await self._writer.send_answer(b"", frame, b"", deadline)
        except ListingFailed as failure:
            self._send(commands.refuse(command, lookup_code(failure.code), failure.message))
        except Exception as error:  # noqa: BLE001  # whatever it is, the client gets an error, and the log the rest
            _log.error("lookup failed", peer=self._address, client=self._client, exc_info=error)
            message = f"Internal error: {type(error).__name__}"
            self._send(commands.refuse(command, ServerError.MetadataError, message))

    # -- listings ---------------------------------------------------------------------------------------------

    def _list(self, command: BaseCommand, asker: Asker) -> None:
        question = command.getTopicsOfNamespace
        request_id = question.request_id
        server = self._server
        try:
            request, uncompiled = read_listing_request(
                question, asker, server.pipeline, self._options.limits, server.loop.time()
            )
            at_once = uncompiled is None and not server.slots.are_taken
            answer = server.pipeline.answer_now(request) if at_once else None
            if answer is not None and self._send_now(request_id, answer):
                return
            if not self._take_slot():
                if answer is not None:
                    answer.release()
                raise TooManyRequests(_TOO_MANY_LOOKUPS, reason="lookups", cause=Cause.QUEUE)
        except ListingFailed as failure:
            self._fail(request_id, failure)
            return
        if answer is None:
            self._start(self._answer(request_id, request, uncompiled))
        else:  # answered, but the bytes have to wait for their turn
            self._start(self._send_answer(request_id, answer, request), answer.release)

    def _send_now(self, request_id: int, answer: Answer) -> bool:
        """Send an answer if it is small and there is room. Raises :exc:`ListingFailed`, and has released it then."""
        if answer.fields_size > SMALL_ANSWER:
            return False
        try:
            head, tail = self._ends(request_id, answer)
            body = answer.selection.body() if answer.selection is not None else b""
            sent = self._writer.send_answer_now(head, body, tail)
        except BaseException:
            answer.release()
            raise
        if sent:
            answer.release()
        return sent

    async def _answer(self, request_id: int, request: ListingRequest, uncompiled: str | None) -> None:
        """Answer a request, whose pattern is still to be compiled if it is given here."""
        pipeline = self._server.pipeline
        try:
            answer = await pipeline.answer(request, topics_pattern=uncompiled)
        except ListingFailed as failure:
            self._fail(request_id, failure)
            return
        await self._send_answer(request_id, answer, request)

    async def _send_answer(self, request_id: int, answer: Answer, request: ListingRequest) -> None:
        try:
            head, tail = self._ends(request_id, answer)
            body = b"" if answer.selection is None else answer.selection.reader()
            await self._writer.send_answer(head, body, tail, request.deadline, partial(self._writes, answer))
        except ListingFailed as failure:
            self._fail(request_id, failure)
        finally:
            if self._writing is answer:
                self._writing = None
            answer.release()

    def _writes(self, answer: Answer) -> None:
        self._writing = answer

    def _ends(self, request_id: int, answer: Answer) -> tuple[bytes, bytes]:
        """What goes around the topics of an answer. Raises :exc:`ListingFailed` where the peer could not read it."""
        size = answer.fields_size
        try:
            head, tail = commands.get_topics_response_head(
                request_id,
                size,
                topics_hash=answer.topics_hash,
                filtered=answer.filtered,
                changed=answer.changed,
            )
        except FrameError:
            raise ResponseTooLarge(size, 2**31 - 1, answer.topics) from None
        size += len(head) + len(tail)
        if self._peer_limit is not None and size > self._peer_limit:
            raise ResponseTooLarge(size, self._peer_limit, answer.topics)
        return head, tail

    def _fail(self, request_id: int, failure: ListingFailed) -> None:
        self._server.metrics.refused(failure.reason)
        self._send(commands.error(request_id, failure.code, failure.message))

    # -- tasks ------------------------------------------------------------------------------------------------

    def _take_slot(self) -> bool:
        """A place for the command that is being handled, and for its bytes."""
        server = self._server
        has_room = len(self._tasks) < _MAX_REQUESTS and server.has_room_for(self._queue.command_size)
        return has_room and server.slots.take()

    def _start(self, work: Coroutine[Any, Any, None], on_end: Callable[[], None] | None = None) -> None:
        """Run the work of one request, whose slot is taken, until the connection ends."""
        task = self._server.loop.create_task(work)
        self._tasks.add(task)
        self._server.tasks.add(task)
        size = self._queue.command_size if self._queue.command_size > _SMALL_COMMAND else 0
        self._server.buffered(size)
        task.add_done_callback(partial(self._ended, size, on_end))

    def _ended(self, size: int, on_end: Callable[[], None] | None, task: asyncio.Task[None]) -> None:
        self._server.buffered(-size)
        self._tasks.discard(task)
        self._server.tasks.discard(task)
        self._server.slots.give_back()
        if task.cancelled():
            let_go_of_cancelled(task)
        if on_end is not None:
            on_end()  # also where the task was cancelled before it had begun
        if not task.cancelled() and (error := task.exception()) is not None:
            # The client waits for an answer that nobody can give any more.
            self._close_for("internal", "request failed", exc_info=error)
        self._close_if_drained()

    def _send(self, frame: bytes) -> None:
        self._writer.send(frame)
