"""A blocking connection that speaks Kafka's protocol, with the seconds of each exchange."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any, Final, Self

from broker_core.wire.kafka import API_VERSIONS, Api, Fields, read_response, request_frame

__all__ = ["KafkaConnection"]

#: With a buffer that the kernel sizes, answers over half a megabyte sometimes wait 40 ms for an acknowledgement.
_RECEIVED: Final = 4 << 20


class KafkaConnection:
    """A context manager. ``apis`` are the keys that the server tells of."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVED)
        self._socket.settimeout(300)
        self._socket.connect(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 20)
        self.apis = {row["api_key"] for row in self.ask(API_VERSIONS, 2, {})["api_keys"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, api: Api, version: int, value: Mapping[str, Any]) -> Fields:
        """The answer."""
        _, message = self.exchange(request_frame(api, version, 7, "bench", value))
        return read_response(api, version, bytes(message))[1]

    def exchange(self, frame: bytes) -> tuple[float, memoryview]:
        """Seconds from the first byte sent to the last byte received, and the answer without its length.

        The answer is valid until the next exchange.
        """
        begun = time.perf_counter()
        self._socket.sendall(frame)
        self._receive(4)
        size = int.from_bytes(self._buffer[:4], "big")
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        self._receive(size)
        return time.perf_counter() - begun, memoryview(self._buffer)[:size]

    def _receive(self, size: int) -> None:
        view, at = memoryview(self._buffer)[:size], 0
        while at < size:
            got = self._socket.recv_into(view[at:])
            if not got:
                raise ConnectionError("the server closed the connection")
            at += got
