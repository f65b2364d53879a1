"""A client of Kafka that sends one request at a time, from an address of its choice, by the codec of kafka-python."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any, Final

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

__all__ = ["RawKafka"]

_TIMEOUT: Final = 30.0


class RawKafka:
    """A connection to ``HOST:PORT`` from the address ``source``; with a ``user``, its SASL PLAIN password is ``pw``."""

    def __init__(self, address: str, user: str | None = None, source: str = "127.0.0.1") -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _TIMEOUT, (source, 0))
        self._stream = self._socket.makefile("rb")
        self._last = 0
        if user is not None:
            self(SaslHandshakeRequest, 1, mechanism="PLAIN")
            said = self(SaslAuthenticateRequest, 2, auth_bytes=f"\0{user}\0pw".encode())
            assert said["error_code"] == 0, said

    def __call__(self, request_type: type[Any], version: int, /, **fields: object) -> dict[str, Any]:
        """The answer as plain values. Raises ``ConnectionError`` if the broker hangs up."""
        self._last += 1
        request = request_type(**{name: _built(request_type, name, value) for name, value in fields.items()})
        request.with_header(correlation_id=self._last, client_id="raw")
        content = self.exchange(bytes(request.encode(version=version, header=True)))
        module = sys.modules[request_type.__module__]
        response = getattr(module, request_type.__name__.replace("Request", "Response"))
        answer: dict[str, Any] = response.decode(content, version=version, header=True).to_dict(json=False)
        return answer

    def exchange(self, content: bytes) -> bytes:
        """The next answer, after a request; both without their length. Raises ``ConnectionError`` as well."""
        self._socket.sendall(struct.pack(">i", len(content)) + content)
        head = self._stream.read(4)
        if len(head) < 4:
            raise ConnectionError("the server has closed the connection")
        return self._stream.read(struct.unpack(">i", head)[0])

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


def _built(owner: Any, name: str, value: Any) -> Any:
    """A list of dicts as a list of the codec's own structs."""
    made = getattr(owner.fields[name], "data_class", None)
    if made is None or not value:
        return value
    if isinstance(value, dict):
        return made(**{key: _built(made, key, item) for key, item in value.items()})
    return [made(**{key: _built(made, key, item) for key, item in row.items()}) for row in value]
