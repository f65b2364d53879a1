"""Sixty-four clients at once: through broker-core, and, with the same SQL, by PostgreSQL's own pgbench."""

from __future__ import annotations

import os
import re
import selectors
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing.listing_sql import RowSource, first_page_statement
from broker_core_postgres.listing.sql_conditions import make_row_conditions
from tests.benchmarks.measure import percentile
from tests.benchmarks.postgres.database import Filled
from tests.benchmarks.wire_client import ERROR, PING, command_type, connect_frame, pong_frame, read_answer

__all__ = ["Rate", "clients_at_once", "pgbench"]

#: Seconds after which pgbench has failed if it has finished no transaction.
_LONGEST: Final = 60

_SIZE: Final = struct.Struct(">I")
_READ: Final = 1 << 20
_MOST_BYTES: Final = 16 * 1024 * 1024
#: The prefix of a line and the first text behind it, of a random line, as SQL makes them.
_LINE: Final = (
    "'plant-' || lpad((:line / 31)::text, 3, '0') || '-line-' || lpad((:line)::text, 4, '0') || '{end}'"
)


@dataclass(frozen=True, slots=True)
class Rate:
    """Answers in a second, and how long one takes, in seconds."""

    per_second: float
    p50: float
    p99: float


class _Client:
    """A connection that always has one question under way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.asked = 0.0
        self._have = bytearray()

    def ask(self, frame: bytes) -> None:
        self.asked = time.perf_counter()
        self.socket.sendall(frame)

    def answered(self) -> bool:
        """Read what is there; whether an answer is complete. A PING of the server gets its PONG."""
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server closed the connection")
        have = self._have
        have += data
        while len(have) >= 10 and len(have) >= (size := 4 + _SIZE.unpack_from(have)[0]):
            kind = command_type(memoryview(bytes(have[:10])))
            if kind == ERROR:
                raise RuntimeError(f"an error under load: {read_answer(memoryview(bytes(have[:size])))}")
            del have[:size]
            if kind != PING:
                return True
            self.socket.sendall(pong_frame())
        return False


def clients_at_once(
    address: tuple[str, int], frame: Callable[[int], bytes], *, clients: int, budget: float
) -> Rate:
    """Each asks again as soon as it has its answer; one thread and one selector, to leave the cores to the server."""
    selector = selectors.DefaultSelector()
    frames = [frame(turn) for turn in range(4096)]
    open_ = [_Client(address) for _ in range(clients)]
    seconds: list[float] = []
    try:
        for client in open_:
            client.ask(connect_frame())
            while not client.answered():
                pass
            selector.register(client.socket, selectors.EVENT_READ, client)
        begun = time.perf_counter()
        for turn, client in enumerate(open_):
            client.ask(frames[turn % len(frames)])
        turn = clients
        while True:
            for key, _ in selector.select():
                client = key.data
                if client.answered():
                    seconds.append(time.perf_counter() - client.asked)
                    client.ask(frames[turn % len(frames)])
                    turn += 1
            passed = time.perf_counter() - begun
            if passed >= budget and len(seconds) >= clients:
                return Rate(len(seconds) / passed, percentile(seconds, 0.5), percentile(seconds, 0.99))
    finally:
        for client in open_:
            client.socket.close()
        selector.close()


def pgbench(filled: Filled, *, clients: int, budget: float) -> Rate:
    """The statement that the plugin sends for a prefix of 1,000 topics, prepared, by as many sessions."""
    server = filled.database.server
    devices = filled.devices
    with tempfile.TemporaryDirectory(prefix="pgbench-") as text:
        folder = Path(text)
        script = folder / "prefix.sql"
        script.write_text(f"\\set line random(0, {devices.lines - 1})\n{_statement(filled)};\n")
        command = [
            str(server.programs / "pgbench"),
            "--no-vacuum",
            "--protocol=prepared",
            f"--client={clients}",
        ]
        command += ["--jobs=2", "--log", f"--log-prefix={folder}/log", f"--file={script}"]
        seconds = max(1, round(budget))
        while True:
            done = subprocess.run(
                [*command, f"--time={seconds}", filled.database.dsn],
                # Bytes that are ASCII take one byte each then, as they do in the binary format that asyncpg reads.
                env={**os.environ, "PGOPTIONS": "-c bytea_output=escape"},
                capture_output=True,
                text=True,
                check=False,
            )
            rate = re.search(r"tps = ([0-9.]+) \(without", done.stdout)
            if rate is not None and done.returncode == 0:
                break
            if done.returncode != 0 or seconds > _LONGEST:
                raise RuntimeError(f"pgbench: {done.stdout[-500:]} {done.stderr[-2000:]}")
            seconds *= 4  # a busy machine has finished none
        logs = folder.glob("log*")
        micros = [float(line.split()[2]) for log in logs for line in log.read_text().splitlines()]
    return Rate(float(rate[1]), percentile(micros, 0.5) / 1e6, percentile(micros, 0.99) / 1e6)


def _statement(filled: Filled) -> str:
    """The plugin's own SQL with the parameters that pgbench makes up."""
    devices = filled.devices
    pattern = compile_pattern(devices.begins_with(devices.line_prefix(0)))
    row_conditions = make_row_conditions(NamespaceName.parse(devices.namespace), Mode.PERSISTENT, pattern)
    statement = first_page_statement(row_conditions, RowSource(), _MOST_BYTES)
    low, high = row_conditions.bounds[0]
    made = {
        low: "(" + _LINE.format(end="-") + ")",
        high: "(" + _LINE.format(end=".") + ")",  # the character behind "-"
    }
    text = statement.text
    for number, value in reversed(list(enumerate(statement.arguments, 1))):
        constant = f"'{value}'" if isinstance(value, str) else str(value)
        text = text.replace(f"${number}::", f"{made.get(value, constant)}::")
    return text.replace("\n", " ")
