"""Speed of listings for Kafka clients: ``python -m tests.benchmarks.kafka --sizes 10000,50000 --peer 127.0.0.1:9092``.

A server of its own, and with ``--peer`` a real Kafka broker, which must have no topics at the beginning, are asked in
turns. Sizes ascend. Figures are medians in milliseconds from the first byte sent to the last byte received on one
warm connection. A million topics (``--sizes 1000000``) take a minute or two on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from tests.benchmarks.kafka.kafka_connection import KafkaConnection
from tests.benchmarks.kafka.kafka_questions import create_topics, questions, topic_count
from tests.benchmarks.names import LOCAL_LENGTH, local_names, namespace_of
from tests.benchmarks.ours import make_catalogue
from tests.benchmarks.processes import MIB, cpu_seconds, machine, resident
from tests.support.ports import host_and_port
from tests.support.served import Served

__all__ = ["Figure", "measure"]

#: Seconds of turns for one figure: a median of a few short turns depends on when the machine does something else.
_AT_LEAST: Final = 0.3


@dataclass(frozen=True, slots=True)
class Figure:
    """Medians in seconds; ``None`` if a server does not have the API.

    ``cpu`` is that of our server for one turn: other load of the machine hardly changes it.
    """

    ours: float | None
    cpu: float
    theirs: float | None


def measure(
    folder: Path, size: int, turns: int, peer: tuple[str, int] | None = None
) -> tuple[dict[str, Figure], int]:
    """The figures by name, and the resident memory of our server in bytes."""
    catalogue = make_catalogue(folder / "catalogue", size)
    settings = {
        "catalog": {"path": str(catalogue.path)},
        "kafka": {"listen": "127.0.0.1:0", "namespace": namespace_of(size)},
    }
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(Served(folder, settings))
        address = host_and_port(served.ready["kafka"])
        ours = questions(stack.enter_context(KafkaConnection(address)), local_names(size))
        theirs: dict[str, Callable[[], float]] = {}
        if peer is not None:
            other = stack.enter_context(KafkaConnection(peer))
            names = [_name(number) for number in range(size)]
            create_topics(other, names[topic_count(other) :])
            while topic_count(other) < size:
                pass  # it answers a change before it lists it
            theirs = questions(other, names)
        figures = {
            name: _figure(ours.get(name), theirs.get(name), turns, served.pid) for name in ours | theirs
        }
        return figures, resident(served.pid)


def _figure(
    ours: Callable[[], float] | None, theirs: Callable[[], float] | None, turns: int, pid: int
) -> Figure:
    """In turns, of which the first two are not counted: so many at least, and more of what is quick.

    Of the CPU time it is the mean of all turns: the clock of another process stands still while that runs, so the one
    of a single turn may be none.
    """
    seconds: list[float] = []
    clock: list[float] = []
    others: list[float] = []
    end = time.perf_counter() + _AT_LEAST
    for turn in count():
        if turn >= turns + 2 and time.perf_counter() >= end:
            break
        if ours is not None:
            seconds.append(ours())
            clock.append(cpu_seconds(pid))
        if theirs is not None:
            others.append(theirs())
    return Figure(
        statistics.median(seconds[2:]) if seconds else None,
        (clock[-1] - clock[1]) / (len(clock) - 2) if clock else 0.0,
        statistics.median(others[2:]) if others else None,
    )


def _name(number: int) -> str:
    """A name as long as those of the catalogue."""
    return f"topic-{number:0{LOCAL_LENGTH - 6}d}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.kafka", description=__doc__)
    parser.add_argument("--sizes", default="10000,50000")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--peer", help="HOST:PORT of a real broker without topics")
    options = parser.parse_args(arguments)
    peer = host_and_port(options.peer) if options.peer else None
    print(machine())
    for size in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory(prefix="broker-core-bench-") as folder:
            figures, memory = measure(Path(folder), size, options.turns, peer)
        print(f"\n{size:,} topics; resident memory {memory / MIB:.0f} MiB")
        print(f"{'':32}{'broker-core':>14}{'its CPU':>12}{'Kafka':>12}{'ratio':>9}")
        for name, figure in figures.items():
            row = [_text(figure.ours), _text(figure.cpu), _text(figure.theirs)]
            ratio = f"{figure.theirs / figure.ours:.1f}" if figure.ours and figure.theirs else ""
            print(f"{name:32}{row[0]:>14}{row[1]:>12}{row[2]:>12}{ratio:>9}")


def _text(seconds: float | None) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds else "-"


if __name__ == "__main__":
    main()
