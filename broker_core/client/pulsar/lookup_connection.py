"""One connection to a lookup service: TLS, handshake, requests by their id, keep-alive.

Nothing here reconnects: a lost connection fails its requests, and its owner opens another.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ConnectTimeout,
    CredentialsFailed,
    HandshakeRefused,
    OperationTimeout,
    ServerRefused,
    TlsCutShort,
    TlsFailed,
    UnexpectedAnswer,
    server_error,
)
from broker_core.client.client_tls import ClientTls, tls_arguments
from broker_core.client.opening_errors import opening_errors, other_protocol, tls_failure
from broker_core.client.pulsar.credentials import Credentials, OriginalPrincipal
from broker_core.client.pulsar.topics_answer import TopicsAnswer, peek_request_id
from broker_core.client.pulsar.watch_success import WATCH_SUCCESS, watch_success
from broker_core.errors import ServerError
from broker_core.wire.pulsar import (
    MAX_COMMAND_SIZE,
    BaseCommand,
    BufferedFrameDecoder,
    CommandConnected,
    CommandWatchTopicUpdate,
    FeatureFlags,
    FrameError,
    commands,
)

__all__ = ["Admit", "LookupConnection", "OnUpdate", "RawAnswer"]

#: The answer to a request: the command, decoded; but the answer to a listing still encoded, for
#: :class:`~broker_core.client.pulsar.topics_answer.TopicsAnswer` to read.
RawAnswer: TypeAlias = BaseCommand | bytes | memoryview

#: Waits until an answer of so many bytes may be read; the server is not read from meanwhile. Raising gives the answer
#: up, and the connection with it.
Admit: TypeAlias = Callable[[int], Awaitable[None]]

#: Called with each change of the topics that a watcher watches.
OnUpdate: TypeAlias = Callable[[CommandWatchTopicUpdate], None]

_NO_FRAME_LIMIT: Final = MAX_COMMAND_SIZE + 8
_TOPICS_RESPONSE: Final = b"\x08\x21"  # the type, as every encoder puts it first
_STALLED: Final = 1.0  # seconds without a byte in the middle of a frame
_MAX_UNSENT: Final = 4 * 1024 * 1024  # bytes that a server may leave unread before it counts as dead


@dataclass(slots=True)
class _Pending:
    answer: asyncio.Future[RawAnswer]
    kind: int  # the type of command that answers
    admit: Admit | None
    admission: asyncio.Task[None] | None = None


class LookupConnection(asyncio.BufferedProtocol):
    """An open connection; :meth:`open` makes one."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        max_frame: int | None,
        credentials: Credentials,
        original: OriginalPrincipal | None = None,
    ) -> None:
        self.address = address
        self.server: CommandConnected = CommandConnected()
        self.client_version = ""
        self._loop = asyncio.get_running_loop()
        self._credentials = credentials
        self._original = original
        self._challenge: asyncio.Task[bytes | None] | None = None  # makes the answer to AUTH_CHALLENGE
        #: For large frames; a small one is in the decoder's buffer already.
        self._max_frame = max_frame
        self._frames = BufferedFrameDecoder(_NO_FRAME_LIMIT)
        self._transport: asyncio.Transport | None = None
        self._connected: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._lost: ClientError | None = None
        self._pending: dict[int, _Pending] = {}
        self._unwanted: set[int] = set()  # requests that were given up, and are not answered yet
        self._next_id = 0
        #: The receivers of watchers' updates, by the watcher's number.
        self.watchers: dict[int, OnUpdate] = {}
        self._admitted = False  # the large frame that is being read
        self._keep_alive: asyncio.TimerHandle | None = None
        self._on_lost: Callable[[], None] | None = None
        self._has_received = True  # anything since the last tick of the keep-alive, or nothing could be
        self._received_at = self._loop.time()

    # ---- opening and closing -------------------------------------------------------------------------------

    @classmethod
    async def open(
        cls,
        address: tuple[str, int],
        *,
        client_version: str,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
        original: OriginalPrincipal | None = None,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        max_frame: int | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> LookupConnection:
        """Connect and shake hands within ``connect_timeout`` seconds; the credentials have as many before. ``on_lost``
        is called once it is no longer open.

        Raises :exc:`ConnectionLost`, :exc:`CredentialsFailed` if there are no credentials to send, or
        :exc:`HandshakeRefused` if the server refuses.
        """
        connection = cls(
            address, max_frame=max_frame, credentials=credentials or Credentials(), original=original
        )
        connection.client_version = client_version
        try:
            async with asyncio.timeout(connect_timeout):
                greeting = await connection._greeting()
        except TimeoutError:
            raise CredentialsFailed(
                f"the credentials to connect with were not there within {connect_timeout:g} s"
            ) from None
        try:
            async with asyncio.timeout(connect_timeout):
                await connection._connect(tls)
                connection._send(greeting)
                await connection._connected
        except TimeoutError:
            connection.abort(ConnectionLost("given up"))
            raise ConnectTimeout(f"{connection._shown} did not answer within {connect_timeout:g} s") from None
        except BaseException as failed:
            connection.abort(ConnectionLost(f"given up: {failed}"))
            raise
        connection._on_lost = on_lost
        connection._keep_alive = connection._loop.call_later(keep_alive, connection._tick, keep_alive)
        return connection

    async def _greeting(self) -> bytes:
        """CONNECT, with the current credentials."""
        original = self._original
        of_original = None if original is None else original.credentials
        try:
            data = await self._credentials.current()
            original_data = None if of_original is None else (await of_original.current() or b"").decode()
        except Exception as failed:  # noqa: BLE001  # whatever their source raises
            raise _no_credentials(failed) from None
        return commands.connect(
            self.client_version,
            auth_method_name=self._credentials.method,
            auth_data=data,
            original_principal=None if original is None else original.name,
            original_auth_data=original_data,
            original_auth_method=None if of_original is None else of_original.method,
            feature_flags=FeatureFlags(supports_auth_refresh=True) if self._refreshed.data else None,
        )

    @property
    def _refreshed(self) -> Credentials:
        """The credentials that the server asks for again when they expire: the original principal's, if it has some.
        docs/reference/pulsar-behaviour.md#credentials-that-run-out
        """
        original = self._original
        return self._credentials if original is None or original.credentials is None else original.credentials

    async def _connect(self, tls: ClientTls | None) -> None:
        """Connect the socket, with TLS if asked for; from then on the server's bytes arrive."""
        host, port = self.address
        with opening_errors(self._shown, is_tls=tls is not None):
            await self._loop.create_connection(lambda: self, host, port, **await tls_arguments(tls, host))

    @property
    def _shown(self) -> str:
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def _is_tls(self) -> bool:
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is not None

    @property
    def is_open(self) -> bool:
        return self._lost is None

    @property
    def pending(self) -> int:
        """Requests that wait for their answer."""
        return len(self._pending)

    @property
    def unwanted(self) -> int:
        """Requests that were given up, and that the server still has."""
        return len(self._unwanted)

    def abort(self, reason: ClientError) -> None:
        """Close at once; pending requests fail with ``reason``."""
        self._fail(reason)
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """Close, and wait until the socket is gone; pending requests fail."""
        self._fail(ConnectionLost(f"the connection to {self._shown} was closed"))
        if self._transport is not None:
            self._transport.abort()
            await asyncio.shield(self._closed)

    # ---- asking --------------------------------------------------------------------------------------------

    async def request(
        self,
        encode: Callable[[int], bytes],
        kind: int,
        *,
        timeout: float,
        admit: Admit | None = None,
    ) -> RawAnswer:
        """Send the frame that ``encode`` makes for a request id; returns the answer, a command of type ``kind``.

        ``timeout`` in seconds. ``admit`` is awaited before an answer of more than 64 KiB is read. Raises
        :exc:`ServerRefused` for an ERROR, :exc:`ConnectionLost`, :exc:`OperationTimeout`, :exc:`UnexpectedAnswer`, or
        whatever ``admit`` raises. A request that is given up in the middle of a stalled frame closes the connection:
        nothing else could be answered over it.
        """
        if self._lost is not None:
            raise ConnectionLost(str(self._lost))
        request_id = self.new_id()
        frame = encode(request_id)
        pending = _Pending(self._loop.create_future(), kind, admit)
        self._pending[request_id] = pending
        self._send(frame)
        try:
            async with asyncio.timeout(timeout):
                return await pending.answer
        except TimeoutError:
            if peek_request_id(self._frames.beginning) == request_id:
                self._break_off()
            raise OperationTimeout(f"{self._shown} did not answer within {timeout:g} s") from None
        finally:
            # A later answer is dropped: request ids are not used again.
            if self._pending.pop(request_id, None) is not None and self._lost is None:
                self._unwanted.add(request_id)
            if pending.admission is not None and not pending.admission.done():
                pending.admission.cancel()
                self.abort(ConnectionLost(f"a large answer of {self._shown} was given up"))
            if pending.answer.cancelled() and self._is_stalled():
                self._break_off()

    def new_id(self) -> int:
        """A number for a request or a watcher, unique on this connection."""
        self._next_id += 1
        return self._next_id - 1

    def send_unanswered(self, encode: Callable[[int], bytes]) -> None:
        """Send a request whose answer is dropped."""
        if self._lost is None:
            request_id = self.new_id()
            self._unwanted.add(request_id)
            self._send(encode(request_id))

    async def until_lost(self) -> None:
        """Wait until the connection is no longer open."""
        await asyncio.shield(self._closed)

    def _is_stalled(self) -> bool:
        """Whether a frame was begun, and nothing more of it comes."""
        return (
            self._frames.buffered > 0
            and self._loop.time() - self._received_at > _STALLED
            and self._transport is not None
            and self._transport.is_reading()
        )

    def _break_off(self) -> None:
        self.abort(ConnectionLost(f"{self._shown} did not finish an answer"))

    def _send(self, frame: bytes) -> None:
        transport = self._transport
        if transport is None or self._lost is not None:
            return
        transport.write(frame)
        if transport.get_write_buffer_size() > _MAX_UNSENT:
            self.abort(ConnectionLost(f"{self._shown} does not read what it is sent"))

    # ---- commands of the server ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  # asyncio's signature
        return self._frames.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._has_received = True
        self._received_at = self._loop.time()
        try:
            for command in self._frames.buffer_updated(nbytes):
                self._on_command(command)
            if not self._frames.large_frame:
                self._admitted = False
            elif not self._connected.done():
                raise UnexpectedAnswer("its first answer is no CONNECTED: it may be no Pulsar server")
            elif not self._admitted:
                self._admit_large()
        except (FrameError, UnexpectedAnswer) as broken:
            self.abort(UnexpectedAnswer(f"{self._shown} broke the protocol: {broken}"))

    def eof_received(self) -> bool:
        return False  # closes the transport

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ssl.SSLError) and not self._connected.done():
            self._fail(TlsFailed(tls_failure(exc, self._shown)))
        elif self._is_tls and not self._connected.done():
            self._fail(
                TlsCutShort(
                    f"{self._shown} closed the connection after the TLS handshake: it may want a certificate of the "
                    "client, or not accept the one it got"
                )
            )
        else:
            text = f"lost the connection to {self._shown}" + (f": {exc}" if exc else "")
            if not (self._frames.start or self._connected.done()):  # brokers send no alert of TLS
                text += "; it may speak another protocol (Kafka?), or TLS only: try pulsar+ssl://"
            self._fail(ConnectionLost(text))
        if not self._closed.done():
            self._closed.set_result(None)

    def _on_command(self, command: bytes | memoryview) -> None:
        if command[:2] == _TOPICS_RESPONSE:
            request_id = peek_request_id(command)
            if request_id is None:  # legal, and no known broker does it
                request_id = TopicsAnswer(command).request_id
            self._on_answer(request_id, BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, command)
            return
        is_success = command[:2] == WATCH_SUCCESS
        decoded = watch_success(command) if is_success else commands.decode(bytes(command))
        kind = decoded.type
        if kind == BaseCommand.WATCH_TOPIC_UPDATE:
            on_update = self.watchers.get(decoded.watchTopicUpdate.watcher_id)
            if on_update is not None:
                on_update(decoded.watchTopicUpdate)
        elif kind == BaseCommand.PING:
            self._send(commands.pong())
        elif kind == BaseCommand.ERROR:
            self._on_error(
                decoded.error.request_id, *server_error(decoded.error.error, decoded.error.message)
            )
        elif kind == BaseCommand.AUTH_CHALLENGE and self._refreshed.data is not None:
            if self._challenge is None:
                self._challenge = self._loop.create_task(self._refreshed.current())
                self._challenge.add_done_callback(self._answer_challenge)
        elif kind == BaseCommand.CONNECTED and not self._connected.done():
            self.server = decoded.connected
            self._connected.set_result(None)
        elif not self._connected.done():
            raise UnexpectedAnswer(f"{commands.command_name(kind)} in place of CONNECTED")
        else:
            # An answer to no request is ignored: a server may send more than we know of.
            request_id = commands.request_id_of(decoded)
            if request_id is not None:
                listing = kind == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
                self._on_answer(request_id, kind, command if listing else decoded)

    def _answer_challenge(self, made: asyncio.Task[bytes | None]) -> None:
        self._challenge = None
        if made.cancelled() or self._lost is not None:
            return
        failed = made.exception()
        if failed is not None:
            self.abort(_no_credentials(failed))
            return
        self._send(commands.auth_response(self.client_version, self._refreshed.method, made.result() or b""))

    def _on_answer(self, request_id: int, kind: int, answer: RawAnswer) -> None:
        pending = self._pending.pop(request_id, None)
        if pending is None or pending.answer.done():
            self._unwanted.discard(request_id)
            return
        if kind == pending.kind:
            pending.answer.set_result(answer)
        else:
            expected, came = commands.command_name(pending.kind), commands.command_name(kind)
            pending.answer.set_exception(
                UnexpectedAnswer(f"{self._shown} answered with {came} in place of {expected}")
            )

    def _on_error(self, request_id: int, code: ServerError, message: str) -> None:
        if not self._connected.done() or request_id == commands.CONNECTION_REQUEST_ID:
            self.abort(HandshakeRefused(code, message))
            return
        self._unwanted.discard(request_id)
        pending = self._pending.pop(request_id, None)
        if pending is not None and not pending.answer.done():
            pending.answer.set_exception(ServerRefused(code, message))

    def _admit_large(self) -> None:
        """Ask whether there is room for the answer that begins here, reading no more of it meanwhile."""
        self._admitted = True
        request_id = peek_request_id(self._frames.beginning)
        pending = None if request_id is None else self._pending.get(request_id)
        if self._max_frame is not None and self._frames.large_frame > self._max_frame:
            self._refuse_large(pending, self._frames.large_frame, self._max_frame)
            return
        if pending is None or pending.admit is None or self._transport is None:
            return
        self._transport.pause_reading()
        size = self._frames.large_frame
        pending.admission = self._loop.create_task(self._admit(pending, pending.admit, size))

    def _refuse_large(self, pending: _Pending | None, size: int, most: int) -> None:
        """Fail the request with this answer for good; the others over the connection may be asked again."""
        refused = UnexpectedAnswer(
            f"an answer of {self._shown}, of {size} bytes, is over the limit of {most} bytes"
        )
        if pending is not None and not pending.answer.done():
            pending.answer.set_exception(refused)
        self.abort(refused)

    async def _admit(self, pending: _Pending, admit: Admit, size: int) -> None:
        try:
            await admit(size)
        except Exception as refused:  # noqa: BLE001  # it is the asker's own, and raised there
            if not pending.answer.done():
                pending.answer.set_exception(refused)
            self.abort(ConnectionLost(f"a large answer of {self._shown} was refused"))
            return
        self._has_received = True
        self._received_at = self._loop.time()
        if self._transport is not None and self._lost is None:
            self._transport.resume_reading()

    # ---- life ----------------------------------------------------------------------------------------------

    def _tick(self, keep_alive: float) -> None:
        """Send a PING every ``keep_alive`` seconds: a server that was silent since the last one is gone."""
        if self._lost is not None or self._transport is None:
            return
        if not self._has_received and self._transport.is_reading():
            self.abort(ConnectionLost(f"{self._shown} is silent"))
            return
        self._has_received = False
        self._send(commands.ping())
        self._keep_alive = self._loop.call_later(keep_alive, self._tick, keep_alive)

    def _fail(self, reason: ClientError) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        if self._keep_alive is not None:
            self._keep_alive.cancel()
        if self._challenge is not None:
            self._challenge.cancel()
        if not self._connected.done():
            url = "its URL is https://" if self._is_tls else "its URL is http://"
            first = bytes(self._frames.start)
            reason = other_protocol(self._shown, first, tls="its URL is pulsar+ssl://", http=url) or reason
            self._connected.set_exception(reason)
            self._connected.exception()  # nobody may wait for it yet
        pending, self._pending = self._pending, {}
        self.watchers.clear()
        for each in pending.values():
            if not each.answer.done():
                each.answer.set_exception(ConnectionLost(str(reason)))
        if self._on_lost is not None:
            self._on_lost()


def _no_credentials(failed: BaseException) -> CredentialsFailed:
    if isinstance(failed, CredentialsFailed):
        return failed
    # Of an unforeseen error the type alone: its text may have parts of the secret.
    return CredentialsFailed(f"no credentials to connect with: {type(failed).__name__}")
