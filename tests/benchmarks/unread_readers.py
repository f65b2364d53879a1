"""Readers that ask for much and read nothing, and how long others wait: ``python -m tests.benchmarks.unread_readers``.

Each asks for half of one large namespace by a pattern of its own. Beside them a client asks again and again for ten
topics, for a thousand by a pattern that nobody asked for before, and for all; the longest waits are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.growth.catalogues import Catalogues, default_cache
from tests.benchmarks.names import Questions
from tests.benchmarks.processes import MIB, machine, resident, resident_peak
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient, connect_frame, get_topics_frame, read_answer
from tests.support.served import Served

__all__ = ["main", "measure"]

#: Seconds that one answer may take.
_PATIENCE: Final = 120.0


@dataclass(slots=True)
class Waits:
    """Seconds of each answer by the kind of question, and how many were errors; bytes of the server's memory."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: int = 0
    memory: int = 0
    closed: int = 0


def measure(served: Served, size: int, readers: int, seconds: float) -> Waits:
    """What ordinary questions wait beside so many unread readers."""
    about, found = Questions(size), Waits()
    before = resident(served.pid)
    client = RawClient(served.address, capacity(size))
    client.ask(get_topics_frame(1, about.namespace))
    with contextlib.ExitStack() as stack:
        unread = [stack.enter_context(_unread(served.address, about, each)) for each in range(readers)]
        end, turn = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            turn += 1
            for kind, pattern in (
                ("ten by prefix", about.prefix(turn)),
                ("a thousand by infix", about.infix(turn)),
                ("all", None),
            ):
                begun = time.perf_counter()
                answer = client.ask(get_topics_frame(1, about.namespace, pattern))
                found.seconds.setdefault(kind, []).append(time.perf_counter() - begun)
                found.errors += len(answer) < 4096 and read_answer(answer).error is not None
        found.closed = sum(map(_is_closed, unread))
    client.close()
    found.memory = resident_peak(served.pid) - before
    return found


@contextlib.contextmanager
def _unread(address: tuple[str, int], about: Questions, number: int) -> Iterator[socket.socket]:
    """A client that asked for half of all topics, other ones than the others, and reads nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(_PATIENCE)
        connection.connect(address)
        connection.sendall(connect_frame())
        connection.recv(1024)
        digits = "".join(str((number + step) % 10) for step in range(5))
        pattern = f"persistent://{about.namespace}/.*[{digits}]-w.*" + f".{{{number // 10},}}"
        connection.sendall(get_topics_frame(1, about.namespace, pattern))
        yield connection


def _is_closed(connection: socket.socket) -> bool:
    """Whether the server has ended it: what it had sent before can be read still."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--heap", default="100MiB", help="limits.heap_permits")
    parser.add_argument("--tree", type=Path, help="another folder of sources")
    asked = parser.parse_args(arguments)
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = Catalogues(default_cache(), folder, print).of_topics(asked.size)
        path = Path(shutil.copyfile(made, folder / "catalog.sqlite"))
        tables: Mapping[str, Mapping[str, Any]] = {
            "catalog": {"path": str(path)},
            "limits": {"heap_permits": asked.heap},
        }
        with Served(folder, tables, python_path=asked.tree, start_seconds=120) as served:
            found = measure(served, asked.size, asked.readers, asked.seconds)
    print(f"{asked.readers} unread readers, {asked.size:,} topics, heap permits {asked.heap}:")
    for kind, seconds in found.seconds.items():
        ordered = sorted(seconds)
        middle, most = ordered[len(ordered) // 2], ordered[-1]
        print(f"  {kind:20} {len(seconds):6} answers, median {middle:.3f} s, longest {most:.3f} s")
    print(
        f"  {found.errors} errors, {found.closed} readers closed, memory at most {found.memory / MIB:.0f} MiB more"
    )


if __name__ == "__main__":
    main()
