"""A client of the HTTP API that costs as little as one can, in a process of its own.

python -m tests.benchmarks.http_client JSON     does what the JSON says (:class:`Work`), and prints what it took as JSON
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlencode

from tests.benchmarks.measure import percentile
from tests.benchmarks.names import local_names

__all__ = ["HttpConnection", "Work", "do", "whole_body"]

_BUFFER: Final = 1 << 20
_LAST_CHUNK: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Work:
    """What to ask for at ``path``, ``times`` times. ``kind``:

    ``text``: the whole listing as text. ``unchanged``: the same with the tag that the client has, which is still right.
    ``pages``: all pages of ``limit`` names, of ``size`` topics of a benchmark (:mod:`.names`) and others that come and
    go; looked at after each was read.
    """

    kind: str
    address: tuple[str, int]
    path: str
    times: int = 1
    limit: int = 10_000
    size: int = 0


def do(work: Work) -> subprocess.Popen[str]:
    """A process that does it; it prints a JSON object."""
    command = [sys.executable, "-m", "tests.benchmarks.http_client", json.dumps(asdict(work))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


class HttpConnection:
    """A connection that stays open."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = address
        self._buffer = bytearray(_BUFFER)

    def ask(self, path: str, headers: str = "", *, keep: bool) -> tuple[str, bytearray, int]:
        """The head of an answer, its body as received (if it is to be kept), and the number of its bytes."""
        request = f"GET {path} HTTP/1.1\r\nHost: {self._address[0]}\r\n{headers}\r\n"
        self._socket.sendall(request.encode())
        kept, view = bytearray(), memoryview(self._buffer)
        have = 0
        while (end := self._buffer.find(b"\r\n\r\n", 0, have)) < 0:
            have += self._receive(view[have:])
        head = bytes(view[:end]).decode().lower()
        begun = end + 4
        length = _length(head)
        total, tail = have - begun, bytes(view[begun:have])
        if keep:
            kept += tail
        while (total < length) if length is not None else (tail[-5:] != _LAST_CHUNK):
            got = self._receive(view)
            total += got
            if keep:
                kept += view[:got]
            tail = tail[-5:] + bytes(view[max(0, got - 5) : got])
        return head, kept, total

    def _receive(self, view: memoryview) -> int:
        got = self._socket.recv_into(view)
        if not got:
            raise ConnectionError("the server has cut the answer")
        return got

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _length(head: str) -> int | None:
    """The length of a body; ``None`` if it comes in chunks."""
    if " 304 " in head.partition("\r\n")[0]:
        return 0
    for line in head.split("\r\n"):
        if line.startswith("content-length:"):
            return int(line.partition(":")[2])
    assert "transfer-encoding: chunked" in head, head
    return None


def whole_body(body: bytearray, head: str) -> bytes:
    """A body without the marks of its chunks."""
    if "content-length:" in head:
        return bytes(body)
    parts: list[bytearray] = []
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        if not size:
            return b"".join(parts)
        parts.append(body[end + 2 : end + 2 + size])
        at = end + 4 + size


def _text(work: Work) -> dict[str, Any]:
    connection = HttpConnection(work.address)
    seconds = []
    for _ in range(work.times):
        begun = time.perf_counter()
        head, _, _ = connection.ask(work.path, "Accept: text/plain\r\n", keep=False)
        seconds.append(time.perf_counter() - begun)
        assert " 200 " in head, head
    head, body, size = connection.ask(work.path, "Accept: text/plain\r\n", keep=True)
    return {"seconds": seconds, "bytes": size, "lines": whole_body(body, head).count(b"\n")}


def _unchanged(work: Work) -> dict[str, Any]:
    connection = HttpConnection(work.address)
    head, _, _ = connection.ask(work.path, keep=False)
    (tag,) = (line.partition(": ")[2] for line in head.split("\r\n") if line.startswith("etag:"))
    seconds = []
    condition = f"If-None-Match: {tag.replace('w/', 'W/')}\r\n"
    for _ in range(work.times):
        begun = time.perf_counter()
        head, _, _ = connection.ask(work.path, condition, keep=False)
        seconds.append(time.perf_counter() - begun)
        assert " 304 " in head, head
    return {"seconds": seconds}


def _pages(work: Work) -> dict[str, Any]:
    connection = HttpConnection(work.address)
    seconds: list[float] = []
    seen: set[str] = set()
    twice = passes = missed = 0
    for _ in range(work.times):
        cursor: str | None = None
        seen.clear()
        while True:
            query = {"limit": work.limit} | ({} if cursor is None else {"cursor": cursor})
            begun = time.perf_counter()
            head, body, _ = connection.ask(f"{work.path}?{urlencode(query)}", keep=True)
            seconds.append(time.perf_counter() - begun)
            assert " 200 " in head, (head, body[:500])
            page = json.loads(whole_body(body, head))
            items = page["items"]
            twice += len(items) - len(set(items) - seen)
            seen.update(items)
            cursor = page["next"]
            if cursor is None:
                break
        names = {name.rpartition("/")[2] for name in seen}
        missed += sum(name not in names for name in local_names(work.size))
        passes += 1
    return {"seconds": seconds, "passes": passes, "twice": twice, "missed": missed, "names": len(seen)}


def _main(text: str) -> None:
    asked = json.loads(text)
    asked["address"] = tuple(asked["address"])
    work = Work(**asked)
    result = {"text": _text, "unchanged": _unchanged, "pages": _pages}[work.kind](work)
    result["count"] = len(result["seconds"])
    result["p50"] = percentile(result["seconds"], 0.5)
    result["p99"] = percentile(result.pop("seconds"), 0.99)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1])
