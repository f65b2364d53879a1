"""Part "under-change": latencies of clients while the namespace changes, beside those while it does not."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.growth.asking import Asking, changed_topics
from tests.benchmarks.growth.paced_clients import Asked, ask_paced
from tests.benchmarks.growth.process_usage import watched_growth
from tests.benchmarks.growth.trees import BenchmarkFailed
from tests.benchmarks.measure import percentile
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.wire_client import RawClient, read_answer

__all__ = ["changing", "measure_under_change"]

_CLIENTS = 16
_EVERY = 0.04  # seconds: 400 questions a second of all clients
_PER_SECOND = 50
_SAME = 64  # ranges whose hash a client has


def measure_under_change(asking: Asking, seconds: float) -> dict[str, float]:
    """Half of the time without changes, then all of it with."""
    questions = _questions(asking)
    pid = asking.server.pid

    def ask(how_long: float) -> dict[str, list[float]]:
        try:
            return ask_paced(
                asking.server.address, questions, clients=_CLIENTS, every=_EVERY, seconds=how_long
            )
        except BenchmarkFailed as error:
            begun = cpu_seconds(pid)
            time.sleep(1.0)
            busy = cpu_seconds(pid) - begun
            raise BenchmarkFailed(
                f"{error}; a second later the server has used {busy:.2f} s of CPU"
            ) from error

    ask(min(seconds, 1.0))  # the first answers
    begun = cpu_seconds(pid)
    quiet = ask(seconds / 2)
    quiet_cpu = (cpu_seconds(pid) - begun) / (seconds / 2)
    with watched_growth(pid) as grown, changing(asking, _PER_SECOND) as changes:
        begun = cpu_seconds(pid)
        busy = ask(seconds)
        spent = cpu_seconds(pid) - begun - quiet_cpu * seconds
    figures = {
        f"{when} {kind} p{share}": percentile(times[kind], share / 100)
        for when, times in (("quiet", quiet), ("changing", busy))
        for kind in ("range", "same")
        for share in (50, 99)
    }
    for kind in ("range", "same"):
        figures[f"{kind} p99 ratio"] = figures[f"changing {kind} p99"] / figures[f"quiet {kind} p99"]
    figures["changes per second"] = changes["changes"] / changes["seconds"]
    figures["cpu per change"] = max(spent, 0.0) / max(changes["changes"], 1)
    figures["growth"] = max(grown.most, 0)
    return figures


@contextmanager
def changing(asking: Asking, per_second: float) -> Iterator[dict[str, Any]]:
    """Another process changes the namespace while the block runs; at its end the result has what it did."""
    done: dict[str, Any] = {}
    arguments = {
        "catalog": asking.server.catalog,
        "namespace": asking.about.namespace,
        "topics": changed_topics(asking.size),
        "per_second": per_second,
    }
    with asking.server.tree.beside("change_often", **arguments) as writer:
        assert writer.stdout is not None
        if writer.stdout.readline() != "ready\n":
            raise BenchmarkFailed(
                f"{asking.server.tree.label}: the program that changes the catalogue has ended"
            )
        yield done
        try:
            said, _ = writer.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise BenchmarkFailed("the program that changes the catalogue does not end") from None
        if writer.returncode != 0:
            raise BenchmarkFailed("the program that changes the catalogue failed: see above")
        done.update(json.loads(said))


def _questions(asking: Asking) -> Iterator[Asked]:
    """New ranges, and ranges whose hash the client has, in turns, without end."""
    client = RawClient(asking.server.address)
    first = client.ask(asking.new_range())
    size, same = len(first), []
    for turn in range(_SAME):
        answer = read_answer(client.ask(asking.range_frame(turn)))
        if answer.error is not None or answer.topics_hash is None:
            raise BenchmarkFailed(f"{asking.server.tree.label}: {answer}")
        same.append(asking.range_frame(turn, answer.topics_hash))
    unchanged = read_answer(client.ask(same[0]))
    if unchanged.changed:
        raise BenchmarkFailed(
            f"{asking.server.tree.label}: a changed range, where it is the same: {unchanged}"
        )
    client.close()
    for turn in itertools.count():
        yield Asked("range", asking.new_range(), size)
        yield Asked("same", same[turn % _SAME], unchanged.size)
