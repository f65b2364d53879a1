"""One connection to a node of a Kafka cluster: TLS, versions of APIs, SASL, requests and their answers in order.

Nothing here reconnects: a connection that is lost fails its requests, and its owner opens another.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import struct
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ConnectTimeout,
    InvalidQuestion,
    TlsFailed,
    UnexpectedAnswer,
)
from broker_core.client.client_tls import ClientTls, tls_arguments
from broker_core.client.kafka.kafka_errors import UnsupportedVersionException, raise_for
from broker_core.client.kafka.sasl import Sasl
from broker_core.client.opening_errors import opening_errors, other_protocol, tls_failure
from broker_core.client.pulsar.lookup_session import software_version
from broker_core.concurrency import in_thread
from broker_core.service_addresses import Address, shown_address
from broker_core.wire.kafka import (
    API_VERSIONS,
    METADATA,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Api,
    ErrorCode,
    Fields,
    MalformedMessage,
    fault_of,
    read_response,
    request_frame,
)

__all__ = ["LARGE_ANSWER", "ConnectionOptions", "Hold", "NodeConnection", "ReadAnswer"]

#: The advice about a port of another protocol.
_OTHER: Final = {
    "tls": "give the client TLS (commands: --tls)",
    "http": "name the port of its Kafka listener",
}
_WITH_TAGS: Final = 9  # the first version of Metadata with tagged fields
LARGE_ANSWER: Final = 256 * 1024  # bytes of an answer that is decoded in a thread, once memory is held for it
_MOST_PAUSE: Final = 60.0  # seconds that a server may have a client wait before its next request
_SESSION_SHARE: Final = 0.85  # of the lifetime of a session, in which it is used
_READ_AHEAD: Final = 1024 * 1024  # bytes in the buffer of a socket

#: Awaited with the size of a large answer before it is read; its error is raised in place of the answer.
Hold: TypeAlias = Callable[[int], Awaitable[None]]
#: Decodes the bytes of an answer of a version to its correlation id and value; in a thread, if it is large.
ReadAnswer: TypeAlias = Callable[[Api, int, bytes], tuple[int, Fields]]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The options that all connections of a client share. Times in seconds, ``max_answer`` in bytes; ``on_silence`` is
    called with the address of a node that does not answer in time.
    """

    client_id: str
    connect_timeout: float
    request_timeout: float
    max_answer: int
    tls: ClientTls | None = None
    sasl: Sasl | None = None
    software_version: str = field(default_factory=software_version)
    on_silence: Callable[[Address], None] = lambda _: None


class NodeSilent(ConnectionLost):
    """The connection ended, since an answer did not come in time."""


class NodeConnection:
    """An open connection; :meth:`open` makes one."""

    def __init__(
        self,
        address: Address,
        options: ConnectionOptions,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.address = address
        self._options = options
        self._reader = reader
        self._writer = writer
        self._shown = shown_address(address)
        self._loop = asyncio.get_running_loop()
        self._last_id = 0
        self._under_way: deque[tuple[int, asyncio.Future[bytes], Hold | None]] = deque()
        self._lost: ClientError | None = None
        #: Versions of APIs that the node has: from and to, by key.
        self.versions: Mapping[int, tuple[int, int]] = {}
        self._has_pages: bool | None = None
        self._probing = asyncio.Lock()
        self._quiet_until = 0.0
        self._session_end = math.inf
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address: Address, options: ConnectionOptions) -> NodeConnection:
        """Connect, ask for the versions and authenticate, all within ``connect_timeout``.

        Raises :exc:`~broker_core.client.ConnectionLost`, and :exc:`~.kafka_errors.KafkaException` if the node refuses.
        """
        connection: NodeConnection | None = None
        try:
            async with asyncio.timeout(options.connect_timeout):
                connection = cls(address, options, *await _connected(address, options.tls))
                await connection._greet()
                if options.sasl is not None:
                    await connection._authenticate(options.sasl)
        except TimeoutError:
            failed = ConnectTimeout(
                f"{shown_address(address)} did not answer within {options.connect_timeout:g} s"
            )
            options.on_silence(address)
            if connection is not None:
                connection.abort(failed)
            raise failed from None
        except BaseException as failed:
            if connection is not None:
                connection.abort(ConnectionLost(f"given up: {failed}"))
            raise
        return connection

    @property
    def is_usable(self) -> bool:
        """Whether the connection may get new requests: it is open, and its session does not end soon."""
        return self._lost is None and self._loop.time() < self._session_end

    @property
    def under_way(self) -> int:
        """Requests that wait for their answer."""
        return len(self._under_way)

    def has(self, api: Api, *, least: int = 0) -> bool:
        """Whether both sides understand a version of the API, ``least`` or a later one."""
        return self._common(api) >= max(least, api.versions.first)

    async def has_pages(self) -> bool:
        """Whether the node has pages (KIP-1062): a node with pages refuses a negative limit, others do not read it."""
        async with self._probing:  # several that wait ask once; if the one that asks gives up, the next asks
            if self._has_pages is None:
                self._has_pages = await self._refuses_negative_limits()
        return self._has_pages

    async def _refuses_negative_limits(self) -> bool:
        if not self.has(METADATA, least=_WITH_TAGS):
            return False
        nothing = {"topics": [], "allow_auto_topic_creation": False, "response_pagination_limit": -1}
        value = await self.ask(METADATA, nothing)
        code = value["error_code"]
        if ErrorCode.INVALID_REQUEST in {code, *(row["error_code"] for row in value["topics"])}:
            return True
        raise_for(code)  # it says nothing about pages
        return False

    def _common(self, api: Api, most: int | None = None) -> int:
        """The latest version that both sides understand; -1 for none."""
        first, last = self.versions.get(api.key, (0, -1))
        common = min(last, api.versions.last if most is None else most)
        return common if common >= max(first, api.versions.first) else -1

    async def ask(
        self,
        api: Api,
        request: Mapping[str, Any],
        *,
        least: int = 0,
        most: int | None = None,
        hold: Hold | None = None,
        read: ReadAnswer = read_response,
        timeout: float | None = None,
    ) -> Fields:
        """The answer to a request of the latest version that both sides understand, ``most`` at the latest.

        Fields that this version lacks are left out: ``least`` is the first version with all necessary fields. Raises
        :exc:`~.kafka_errors.UnsupportedVersionException` if there is none,
        :exc:`~broker_core.client.InvalidQuestion` for values that cannot be sent,
        :exc:`~broker_core.client.ConnectionLost`, also for a node that does not answer within ``timeout`` (else
        ``request_timeout``), and
        :exc:`~broker_core.client.UnexpectedAnswer`; the last two end the connection.
        """
        version = self._common(api, most)
        fault = fault_of(api.request, request, api.versions.last if version < 0 else version)
        if fault is not None:
            raise InvalidQuestion(f"{api.name} cannot be asked this: {fault}")
        if version < max(least, api.versions.first):
            wanted = f" from version {least} on" if version >= 0 else ""
            raise UnsupportedVersionException(f"{self._shown} does not support {api.name}{wanted}")
        if (pause := self._quiet_until - self._loop.time()) > 0:
            await asyncio.sleep(pause)
        message = await self._answered(api, version, request, hold, timeout)
        value = await self._decoded(api, version, message, read)
        throttle = value.get("throttle_time_ms", 0)
        if throttle > 0:
            self._quiet_until = self._loop.time() + min(throttle / 1000, _MOST_PAUSE)
        return value

    def abort(self, reason: ClientError) -> None:
        """Close at once; requests under way fail with ``reason``."""
        if self._lost is None:
            self._lost = reason
        while self._under_way:
            _, answer, _ = self._under_way.popleft()
            if not answer.done():
                answer.set_exception(reason.copy())
                answer.exception()  # nobody may be waiting any more
        if asyncio.current_task() is not self._reading:
            self._reading.cancel()
        self._writer.transport.abort()

    async def close(self) -> None:
        """Close, and wait until the socket is gone."""
        self.abort(ConnectionLost(f"the connection to {self._shown} was closed"))
        await asyncio.gather(self._reading, return_exceptions=True)
        try:
            await self._writer.wait_closed()
        except OSError:  # its failure is reported already
            pass

    async def _greet(self) -> None:
        """Ask for the versions of the node's APIs."""
        version = API_VERSIONS.versions.last
        greeting = {
            "client_software_name": "broker-core",
            "client_software_version": self._options.software_version,
        }
        message = await self._answered(API_VERSIONS, version, greeting)
        if message[4:6] == ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big"):
            # Such an answer has version 0, and may list the versions.
            value = await self._decoded(API_VERSIONS, 0, message)
            known = {row["api_key"]: row["max_version"] for row in value["api_keys"]}
            version = max(0, min(known.get(API_VERSIONS.key, 0), version))
            message = await self._answered(API_VERSIONS, version, greeting)
        value = await self._decoded(API_VERSIONS, version, message)
        raise_for(value["error_code"])
        self.versions = {
            row["api_key"]: (row["min_version"], row["max_version"]) for row in value["api_keys"]
        }

    async def _authenticate(self, sasl: Sasl) -> None:
        """SaslHandshake and SaslAuthenticate, until the mechanism has ended."""
        agreed = await self.ask(SASL_HANDSHAKE, {"mechanism": sasl.mechanism}, least=1)
        known = ", ".join(agreed["mechanisms"][:10])
        raise_for(agreed["error_code"], f"{self._shown} has no {sasl.mechanism}; it has {known or 'none'}")
        lifetime = 0.0
        async with aclosing(sasl.exchange()) as messages:
            message = await anext(messages)
            with suppress(StopAsyncIteration):
                while True:
                    answer = await self.ask(SASL_AUTHENTICATE, {"auth_bytes": message})
                    raise_for(answer["error_code"], answer["error_message"])
                    lifetime = answer["session_lifetime_ms"] / 1000
                    message = await messages.asend(answer["auth_bytes"])
        if lifetime > 0:
            # The server closes it then: another connection has to be there before.
            self._session_end = self._loop.time() + lifetime * _SESSION_SHARE

    async def _answered(
        self,
        api: Api,
        version: int,
        request: Mapping[str, Any],
        hold: Hold | None = None,
        timeout: float | None = None,
    ) -> bytes:
        if self._lost is not None:
            raise ConnectionLost(str(self._lost))
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        try:
            frame = request_frame(api, version, self._last_id, self._options.client_id, request)
        except (struct.error, ValueError) as wrong:
            raise InvalidQuestion(f"{api.name} cannot be asked this: {wrong}") from None
        answer: asyncio.Future[bytes] = self._loop.create_future()
        self._under_way.append((self._last_id, answer, hold))
        self._writer.write(frame)
        seconds = self._options.request_timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            self._options.on_silence(self.address)
            # Later answers would come after it.
            failed = NodeSilent(f"{self._shown} did not answer {api.name} within {seconds:g} s")
            self.abort(failed)
            raise failed from None

    async def _decoded(
        self, api: Api, version: int, message: bytes, read: ReadAnswer = read_response
    ) -> Fields:
        try:
            if len(message) > LARGE_ANSWER:
                _, value = await in_thread(id(self), read, api, version, message)
            else:
                _, value = read(api, version, message)
        except MalformedMessage as broken:
            failed = UnexpectedAnswer(
                f"{self._shown} answered {api.name} (version {version}) with bytes that are no answer to it: {broken}"
            )
            self.abort(failed)
            raise failed from None
        return value

    async def _read(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(4)
                if other := other_protocol(self._shown, head, **_OTHER):
                    raise other
                size = int.from_bytes(head, "big", signed=True)
                if not 4 <= size <= self._options.max_answer:
                    raise UnexpectedAnswer(
                        f"{self._shown} announced an answer of {size} bytes; at most "
                        f"{self._options.max_answer} are taken"
                    )
                if not self._under_way:
                    raise UnexpectedAnswer(f"{self._shown} sent an answer without a question")
                number, answer, hold = self._under_way[0]
                if hold is not None and size > LARGE_ANSWER and not await _has_room(hold, size, answer):
                    await self._skip(size)
                    self._under_way.popleft()
                    continue
                message = await self._reader.readexactly(size)
                said = int.from_bytes(message[:4], "big", signed=True)
                if said != number:
                    raise UnexpectedAnswer(
                        f"{self._shown} answered request {said}, and request {number} was the first without an answer"
                    )
                self._under_way.popleft()
                if not answer.done():
                    answer.set_result(message)
        except ssl.SSLError as failed:
            # With TLS 1.3 a client's certificate is refused after the handshake: the first answer is the alert.
            lost = ConnectionLost if self.versions else TlsFailed
            self.abort(lost(tls_failure(failed, self._shown)))
        except (asyncio.IncompleteReadError, OSError):
            self.abort(ConnectionLost(f"{self._shown} closed the connection"))
        except (UnexpectedAnswer, TlsFailed) as broken:
            self.abort(broken)

    async def _skip(self, size: int) -> None:
        """Read an answer that nobody waits for any more."""
        while size:
            size -= len(await self._reader.readexactly(min(size, _READ_AHEAD)))


async def _has_room(hold: Hold, size: int, answer: asyncio.Future[bytes]) -> bool:
    """Whether an answer of this size may be read; if not, ``answer`` says why."""
    if answer.done():  # the caller has gone
        return False
    try:
        await hold(size)
    except Exception as refused:  # noqa: BLE001 - it is whatever the caller's own function raises
        if not answer.done():
            answer.set_exception(refused)
        return False
    return True


async def _connected(
    address: Address, tls: ClientTls | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = address
    with opening_errors(shown_address(address), is_tls=tls is not None):
        return await asyncio.open_connection(host, port, limit=_READ_AHEAD, **await tls_arguments(tls, host))
