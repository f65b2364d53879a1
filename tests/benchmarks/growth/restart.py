"""Part "restart": from the start of the process to the first answer, without and with files of an earlier run.

The file of the catalogue is in the system's cache of pages each time.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.growth.asking import Asking
from tests.benchmarks.growth.trees import BenchmarkFailed, Tree
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient

__all__ = ["forget_snapshots", "measure_restart", "snapshot_bytes"]

_MIX = 20
_TAIL = 64
_MOST_WRITING = 120.0


def measure_restart(tree: Tree, catalog: Path, size: int, patience: float) -> dict[str, float]:
    """Four starts: the first question is everything or a range, with nothing beside the catalogue or with files.

    A server gets time to write its files, ``patience`` seconds until the next byte.
    """
    figures: dict[str, float] = {}
    answers: dict[str, tuple[int, bytes]] = {}

    def start(when: str, what: str) -> None:
        with tree.server(catalog) as server:
            asking = Asking(server, size)
            client = RawClient(server.address, capacity(size) if what == "full" else 1 << 16)
            frame = asking.everything if what == "full" else asking.new_range()
            spent = asking.first(client, frame)
            figures[f"{when} {what}"] = spent.seconds
            if what == "range":
                figures[f"{when} ready"] = server.ready_after
                figures[f"{when} cpu"] = cpu_seconds(server.pid)
            answer = client.ask(frame)
            got = (len(answer), bytes(answer[-_TAIL:]))  # the hash is in the tail
            if got[0] != spent.size or answers.setdefault(what, got) != got:
                raise BenchmarkFailed(f"{tree.label}: after a restart the answer is another one")
            for _ in range(_MIX):
                asking.spent(client, asking.new_range())
            client.close()
            if when == "cold" and what == "range":
                _wait_for_files(catalog, patience)

    start("cold", "full")
    forget_snapshots(catalog)
    start("cold", "range")
    start("warm", "full")
    start("warm", "range")
    figures["snapshot bytes"] = snapshot_bytes(catalog)
    del figures["cold cpu"]
    return figures


def _wait_for_files(catalog: Path, patience: float) -> None:
    """Until nothing was written beside the catalogue for some time."""
    seen, changed = -1, time.monotonic()
    end = changed + _MOST_WRITING
    while time.monotonic() < min(changed + patience, end):
        now = snapshot_bytes(catalog)
        if now != seen:
            seen, changed = now, time.monotonic()
        time.sleep(patience / 20)


def _folders(catalog: Path) -> list[Path]:
    return [each for each in catalog.parent.iterdir() if each.is_dir()]


def forget_snapshots(catalog: Path) -> None:
    """Remove the folders beside a catalogue."""
    for folder in _folders(catalog):
        shutil.rmtree(folder)


def snapshot_bytes(catalog: Path) -> int:
    """Bytes of all files in the folders beside a catalogue."""
    total = 0
    for folder in _folders(catalog):
        for file in folder.rglob("*"):
            with suppress(FileNotFoundError):  # it had this name while it was written
                total += file.stat().st_size if file.is_file() else 0
    return total
