"""CPU time of the server for each small answer: ``python -m tests.benchmarks.small_listings``.

Each namespace has 20 topics. Some clients send a few questions at once each, and the next few when all of these are
answered. What is measured is the CPU time of the server's process with its system calls, which other load of the
machine hardly changes. ``--beside FOLDER`` measures the sources in another folder in turns with these.
"""

from __future__ import annotations

import argparse
import contextlib
import selectors
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from itertools import cycle, product
from pathlib import Path
from typing import Final

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName
from tests.benchmarks.processes import cpu_seconds, machine
from tests.benchmarks.wire_client import (
    FrameClient,
    RawClient,
    get_topics_frame,
    lookup_frame,
    partitions_frame,
    ping_frame,
    read_answer,
)
from tests.support.served import Served

__all__ = ["fill", "measure_small", "small_questions"]

NAMESPACES: Final = 20
TOPICS: Final = 20
CLIENTS: Final = 8
#: How many questions a client sends at once.
DEPTHS: Final = (1, 16)


def _namespace(number: int) -> str:
    return f"public/small-{number:02d}"


def fill(path: Path) -> None:
    """A catalogue of small namespaces."""
    with SqliteCatalog(path) as catalog:
        for number in range(NAMESPACES):
            for topic in range(TOPICS):
                catalog.create(
                    TopicName.parse(f"persistent://{_namespace(number)}/orders-eu-customer-{topic:02d}")
                )


def small_questions(address: tuple[str, int]) -> dict[str, list[bytes]]:
    """The frames of each kind of question, one for each namespace; the answers are looked at once."""
    client = RawClient(address)
    kinds: dict[str, list[bytes]] = {}
    try:
        for number in range(NAMESPACES):
            namespace = _namespace(number)
            pattern = f"persistent://{namespace}/orders-eu-.*"
            whole = read_answer(client.ask(get_topics_frame(number, namespace)))
            frames = {
                "listing": get_topics_frame(number, namespace),
                "listing by pattern": get_topics_frame(number, namespace, pattern),
                "unchanged": get_topics_frame(number, namespace, topics_hash=whole.topics_hash),
                "unchanged by pattern": get_topics_frame(number, namespace, pattern, whole.topics_hash),
            }
            for kind, frame in frames.items():
                answer = read_answer(client.ask(frame))
                topics = TOPICS * kind.startswith("listing")
                if (
                    answer.error is not None
                    or answer.topics != topics
                    or answer.topics_hash != whole.topics_hash
                ):
                    raise RuntimeError(f"{kind}: {answer}")
            topic = f"persistent://{namespace}/orders-eu-customer-00"
            frames["PING"] = ping_frame()
            frames["partitions"] = partitions_frame(number, topic)
            frames["LOOKUP (refused)"] = lookup_frame(number, topic)
            for kind, frame in frames.items():
                kinds.setdefault(kind, []).append(frame)
    finally:
        client.close()
    return kinds


def measure_small(served: Served, frames: Sequence[bytes], depth: int, answers: int) -> float:
    """Seconds of the server's CPU time for one answer, if each client sends ``depth`` requests at once."""
    endless = list(frames) * (1 + depth // len(frames) + 1)
    bursts = cycle([b"".join(endless[at : at + depth]) for at in range(len(frames))])
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        clients = [
            stack.enter_context(contextlib.closing(FrameClient(served.address))) for _ in range(CLIENTS)
        ]
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ, client)
        _ask(clients, selector, bursts, depth, answers // 10)
        before = cpu_seconds(served.pid)
        had = _ask(clients, selector, bursts, depth, answers)
        return (cpu_seconds(served.pid) - before) / had


def _ask(
    clients: Sequence[FrameClient],
    selector: selectors.BaseSelector,
    bursts: Iterator[bytes],
    depth: int,
    answers: int,
) -> int:
    """Let all ask again and again until there are so many answers; how many there are in the end."""
    had = 0
    waits = dict.fromkeys(clients, depth)
    for client in clients:
        client.socket.sendall(next(bursts))
    while waits:
        for key, _ in selector.select():
            client = key.data
            came = len(client.frames())
            waits[client] -= came
            had += came
            if waits[client]:
                continue
            if had < answers:
                client.socket.sendall(next(bursts))
                waits[client] = depth
            else:
                del waits[client]
    return had


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.small_listings", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--answers", type=int, default=10_000, help="of each question, in each round")
    parser.add_argument("--beside", type=Path, help="another folder of sources, measured in turns")
    parser.add_argument("--only", default="", help="kinds of questions with this text in their name")
    options = parser.parse_args(arguments)
    folders = {"here": None} if options.beside is None else {"beside": options.beside, "here": None}
    taken: dict[tuple[str, int], dict[str, list[float]]] = {}
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="broker-core-bench-")))
        fill(work / "catalog.sqlite")
        settings = {"catalog": {"path": str(work / "catalog.sqlite")}}
        servers = {
            name: stack.enter_context(Served(work / name, settings, python_path=folder))
            for name, folder in folders.items()
        }
        kinds = {name: small_questions(served.address) for name, served in servers.items()}
        for _ in range(options.rounds):
            for kind, depth in product(kinds["here"], DEPTHS):
                if options.only in kind:
                    figures = taken.setdefault((kind, depth), {name: [] for name in folders})
                    for name, served in servers.items():
                        figures[name].append(measure_small(served, kinds[name][kind], depth, options.answers))
    print(f"{machine()}.\n")
    print(f"Microseconds of the server's CPU time for one small answer, in {options.rounds} rounds.")
    heads = "".join(f"{name + ', least':>16}{'median':>10}" for name in folders)
    print(f"{'question':24}{'at once':>8}{heads}")
    for (kind, depth), figures in taken.items():
        texts = "".join(
            f"{min(each) * 1e6:16.1f}{statistics.median(each) * 1e6:10.1f}" for each in figures.values()
        )
        print(f"{kind:24}{depth:8}{texts}")


if __name__ == "__main__":
    main()
