"""One request of kafka-python's codec at a time, of any version, over a plain socket."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any

__all__ = ["RawClient"]


class RawClient:
    """One request per call, over one connection that is made anew when the broker has closed it."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.sock: socket.socket | None = None
        self.correlation = 0

    def exchange(self, payload: bytes) -> bytes | None:
        """The answer (without its length) to a request (without its length), or None if the broker hung up."""
        if self.sock is None:
            self.sock = socket.create_connection(self.address, timeout=60)
        try:
            self.sock.sendall(struct.pack(">i", len(payload)) + payload)
            stream = self.sock.makefile("rb")
            head = stream.read(4)
            if len(head) < 4:
                raise ConnectionError
            return stream.read(struct.unpack(">i", head)[0])
        except ConnectionError:
            self.sock.close()
            self.sock = None
            return None

    def __call__(self, request_type: type, version: int, /, **fields: object) -> object:
        self.correlation += 1
        request = request_type(**{k: build(request_type, k, v) for k, v in fields.items()})
        request.with_header(correlation_id=self.correlation, client_id="raw")
        answer = self.exchange(bytes(request.encode(version=version, header=True)))
        if answer is None:
            return "connection closed"
        module = sys.modules[request_type.__module__]
        response = getattr(module, request_type.__name__.replace("Request", "Response"))
        return response.decode(answer, version=version, header=True).to_dict(json=False)


def build(owner: Any, field: str, value: object) -> object:
    """A list of dicts becomes a list of the codec's own structs."""
    if not (isinstance(value, (list, dict)) and value):
        return value
    struct_type = owner.fields[field].data_class if hasattr(owner.fields[field], "data_class") else None
    if struct_type is None:
        return value
    if isinstance(value, dict):
        return struct_type(**{k: build(struct_type, k, v) for k, v in value.items()})
    return [struct_type(**{k: build(struct_type, k, v) for k, v in item.items()}) for item in value]
