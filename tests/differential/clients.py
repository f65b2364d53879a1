"""Clients of one server: a connection for each client and protocol, made anew when the server closes it."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Final, Self

import aiohttp
from yarl import URL

from broker_core.wire.kafka import SASL_AUTHENTICATE, SASL_HANDSHAKE, request_frame
from broker_core.wire.pulsar import BaseCommand, commands
from tests.differential.http_requests import HttpRequest
from tests.differential.world import Persona
from tests.support.served import Served

__all__ = ["Clients"]

#: Seconds in which an answer must have come, whatever it is.
_PATIENCE: Final = 120.0
#: Seconds, and answers to others after them, in which a server that says nothing waits for the rest of a message.
_SILENCE: Final = 0.5
_OTHERS: Final = 5
_LARGEST: Final = 1 << 28
_LENGTH: Final = re.compile(rb"Content-Length: ([0-9]+)")


class _Connection:
    """A connection that can be read message by message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def message(self) -> bytes:
        """The next message behind its length; empty at the end."""
        try:
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def http_answer(self) -> bytes:
        """One answer of an HTTP server, as far as it comes."""
        said = b""
        try:
            while piece := await self.reader.read(1 << 16):
                said += piece
                head, end, body = said.partition(b"\r\n\r\n")
                length = _LENGTH.search(head)
                if end and (body.endswith(b"0\r\n\r\n") if length is None else len(body) >= int(length[1])):
                    break
        except ConnectionError:
            said += b"<reset>"
        self.writer.close()
        return said

    async def rest(self, waits: Coroutine[None, None, None]) -> bytes:
        """All that still comes, after which there is nothing more to say.

        What has no answer yet when the end is seen gets none: the end comes once the server says something, or waits,
        which is so when ``waits`` is done.
        """
        reading = asyncio.create_task(self.reader.read(1 << 16))
        waiting = asyncio.create_task(waits)
        try:
            await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
            self.writer.write_eof()
            return await reading + await self.reader.read(-1)
        except (ConnectionError, OSError):
            return b"<reset>"
        finally:
            waiting.cancel()
            self.writer.close()


class Clients:
    """The clients of a server; ``async with``."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self._open: dict[tuple[str, Persona], _Connection] = {}
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent", "Content-Type"),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open.values():
            connection.writer.close()
        await self._http.close()

    # ---- Pulsar

    async def pulsar(self, persona: Persona, frame: bytes) -> bytes:
        """The answer to a command, without PINGs; the handshake's if that fails."""
        connection, refused = await self._connected("pulsar", persona, _pulsar_handshake)
        if connection is None:
            return refused
        body = frame[8:]  # behind the lengths of frame and command
        is_answered = commands.is_answered(BaseCommand.FromString(body))
        connection.writer.write(frame if is_answered else frame + commands.ping())
        found: list[bytes] = []
        while True:
            try:
                message = await asyncio.wait_for(connection.message(), _PATIENCE)
            except TimeoutError:
                self._lost("pulsar", persona)
                return b"".join((*found, b"<silence>"))
            if not message:
                self._lost("pulsar", persona)
                return b"".join((*found, b"<closed>"))
            command = BaseCommand.FromString(message[4:])
            if command.type == BaseCommand.PING:
                connection.writer.write(commands.pong())
            elif command.type == BaseCommand.PONG:
                if not is_answered:
                    return b"".join(found)
            else:
                found.append(message)
                if is_answered:
                    return b"".join(found)

    # ---- Kafka

    async def kafka(self, persona: Persona, frame: bytes) -> bytes:
        """The answer to a request."""
        connection, refused = await self._connected("kafka", persona, _kafka_handshake)
        if connection is None:
            return refused
        connection.writer.write(frame)
        message = await asyncio.wait_for(connection.message(), _PATIENCE)
        if not message:
            self._lost("kafka", persona)
        return message or b"<closed>"

    # ---- any

    async def alone(
        self,
        road: str,
        persona: Persona,
        data: bytes,
        *,
        source: str | None = None,
        password: str | None = None,
    ) -> tuple[bytes, bytes]:
        """All that a server says to bytes that need be no message, on a connection of their own, until it closes it.

        What it says to the handshake is apart from the rest.
        ``source`` is the address that the connection comes from.
        """
        connection = await self._connect(road, source)
        if road == "http":
            connection.writer.write(data + b"\r\n\r\n")
            return b"", await asyncio.wait_for(connection.http_answer(), _PATIENCE)
        handshake = _pulsar_handshake if road == "pulsar" else _kafka_handshake
        said = b""
        for frame in handshake(persona, password or persona.password):
            connection.writer.write(frame)
            message = await asyncio.wait_for(connection.message(), _PATIENCE)
            said += len(message).to_bytes(4, "big") + message
            if not message:
                break
        if data:
            connection.writer.write(data)
        return said, await asyncio.wait_for(connection.rest(self._waits()), _PATIENCE)

    async def _waits(self) -> None:
        """Come to an end when the server, however slow, would have said something by now."""
        await asyncio.sleep(_SILENCE)
        for _ in range(_OTHERS):
            async with self._http.get(f"http://{self.server.ready['http']}/-/live") as answer:
                assert answer.ok

    async def _connected(
        self, road: str, persona: Persona, handshake: Callable[[Persona, str], list[bytes]]
    ) -> tuple[_Connection | None, bytes]:
        """The connection of a client, or what the server has against it."""
        found = self._open.get((road, persona))
        if found is not None and not found.reader.at_eof():
            return found, b""
        connection = await self._connect(road)
        said = b""
        for frame in handshake(persona, persona.password):
            connection.writer.write(frame)
            message = await asyncio.wait_for(connection.message(), _PATIENCE)
            said += message
            if not _goes_on(road, message):
                connection.writer.close()
                return None, said + b"<closed>"
        self._open[road, persona] = connection
        return connection, b""

    async def _connect(self, road: str, source: str | None = None) -> _Connection:
        host, _, port = self.server.ready[road].rpartition(":")
        local = None if source is None else (source, 0)
        return _Connection(*await asyncio.open_connection(host, int(port), local_addr=local, limit=_LARGEST))

    def _lost(self, road: str, persona: Persona) -> None:
        self._open.pop((road, persona)).writer.close()

    # ---- HTTP

    async def http(self, persona: Persona, request: HttpRequest, client: str) -> tuple[bytes, bytes]:
        """The head of an answer without its date, and the body; of a stream of events, the first one."""
        host = self.server.ready["http"]
        headers = {"User-Agent": client, "Host": "localhost", **_credentials(persona), **request.headers}
        url = URL(f"http://{host}{request.target}", encoded=True)
        try:
            async with asyncio.timeout(_PATIENCE):
                async with self._http.request(
                    request.method, url, headers=headers, data=request.body, allow_redirects=False
                ) as answer:
                    packed = "Content-Encoding" in answer.headers
                    head = [f"{answer.status} {answer.reason}".encode()]
                    head += [
                        name + b": " + value
                        for name, value in answer.raw_headers
                        if name not in (b"Date", b"Set-Cookie") and not (packed and name == b"Content-Length")
                    ]
                    if answer.content_type == "text/event-stream":
                        body = await answer.content.readuntil(b"\n\n")
                        answer.close()
                    else:
                        body = await answer.read()
                    return b"\n".join(head), body
        except (aiohttp.ClientError, TimeoutError) as error:
            return b"<no answer>", f"{type(error).__name__}".encode()


def _pulsar_handshake(persona: Persona, password: str) -> list[bytes]:
    data = {"basic": f"{persona.role}:{password}", "token": persona.token}.get(persona.method)
    return [
        commands.connect(
            "differential",
            auth_method_name=persona.method,
            auth_data=None if data is None else data.encode(),
            original_principal=persona.principal,
        )
    ]


def _kafka_handshake(persona: Persona, password: str) -> list[bytes]:
    if persona.method == "token":
        mechanism, data = "OAUTHBEARER", f"n,,\x01auth=Bearer {persona.token}\x01\x01"
    else:
        mechanism, data = "PLAIN", f"\0{persona.role}\0{password}"
    return [
        request_frame(SASL_HANDSHAKE, 1, 1, "differential", {"mechanism": mechanism}),
        request_frame(SASL_AUTHENTICATE, 2, 2, "differential", {"auth_bytes": data.encode()}),
    ]


def _goes_on(road: str, message: bytes) -> bool:
    """Whether the handshake may go on after an answer."""
    if road == "pulsar":
        return bool(message) and BaseCommand.FromString(message[4:]).type == BaseCommand.CONNECTED
    # Behind the correlation id, and in a flexible version its tags, is the code.
    return bool(message) and not any(message[4:7])


def _credentials(persona: Persona) -> Mapping[str, str]:
    if persona.method == "none":
        return {}
    principal = {"X-Original-Principal": persona.principal} if persona.principal else {}
    if persona.method == "token":
        return {"Authorization": f"Bearer {persona.token}", **principal}
    basic = base64.b64encode(f"{persona.role}:{persona.password}".encode()).decode()
    return {"Authorization": f"Basic {basic}", **principal}
