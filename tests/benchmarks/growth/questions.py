"""Part "questions": the cost of answers of each kind, and the resident memory that stays after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker_core.names import NamespaceName, TopicName
from tests.benchmarks.floor import floor_client
from tests.benchmarks.growth.asking import Asking, Spent, changed_topics, least
from tests.benchmarks.growth.catalogues import SMALL_NAMESPACE
from tests.benchmarks.growth.trees import BenchmarkFailed
from tests.benchmarks.processes import cpu_seconds, resident, resident_peak
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer
from tests.support.catalogue_topics import create_topics

__all__ = ["ask_questions"]

_REPEATS = 7
_BURSTS = 12
_BURST = 256
_SMALL_CONNECTIONS = 4
_ROOM = 4 * 1024 * 1024

Figures = dict[str, float]


def ask_questions(asking: Sequence[Asking]) -> list[Figures]:
    """The figures of each server, which are asked in turns; none was asked before."""
    clients = [RawClient(each.server.address, max(_ROOM, each.size * 4)) for each in asking]
    found: list[Figures] = [{} for _ in asking]

    def measure(name: str, frame: Callable[[Asking, int], bytes], repeats: int = _REPEATS) -> None:
        spent: list[list[Spent]] = [[] for _ in asking]
        for turn in range(repeats):
            for one, client, own in zip(asking, clients, spent, strict=True):
                own.append(one.spent(client, frame(one, turn)))
        for own, figures in zip(spent, found, strict=True):
            figures[name], figures[f"{name} cpu"] = least(own)

    for one, client, figures in zip(asking, clients, found, strict=True):
        figures["first answer"] = one.first(client, one.new_range()).seconds
        figures["rss loaded"] = resident(one.server.pid)
    _check_answers(asking, clients)
    measure("range", lambda one, _: one.new_range(), 50)
    measure("infix", lambda one, turn: one.infix(2 + turn))
    measure("scan", lambda one, _: one.new_scan())
    measure("remembered", lambda one, _: one.infix(2), 20)
    measure("after change", lambda one, turn: _changed(one, turn, one.infix(2)))
    measure("selected after change", lambda one, turn: _changed(one, turn + _REPEATS, one.selected()))
    for client in clients:
        client.close()
    _measure_everything(asking, found)
    _measure_small(asking, found)
    for one, figures in zip(asking, found, strict=True):
        figures["rss mixed"] = resident(one.server.pid)
        figures["rss most"] = resident_peak(one.server.pid)
        del figures["selected after change cpu"]
    return found


def _check_answers(asking: Sequence[Asking], clients: Sequence[RawClient]) -> None:
    """The number of topics of the questions that have a known one."""
    for one, client in zip(asking, clients, strict=True):
        for frame, wanted in ((one.new_range(), 10), (one.infix(0), 1_000)):
            answer = read_answer(client.ask(frame))
            if answer.error is not None or answer.topics != wanted:
                raise BenchmarkFailed(f"{one.server.tree.label}: {answer}, where {wanted} were expected")


def _changed(one: Asking, turn: int, frame: bytes) -> bytes:
    """The question, after a topic was created somewhere."""
    topics = changed_topics(one.size)
    local = f"{topics[turn % len(topics)]}-asked-{turn}"
    create_topics(
        one.server.catalog, TopicName("persistent", NamespaceName.parse(one.about.namespace), local)
    )
    return frame


def _measure_everything(asking: Sequence[Asking], found: Sequence[Figures]) -> None:
    """The whole listing, beside a process that has the same bytes ready."""
    clients = [RawClient(one.server.address, capacity(one.size)) for one in asking]
    try:
        size = max(
            one.spent(client, one.everything).size for one, client in zip(asking, clients, strict=True)
        )
        repeats = _REPEATS if asking[0].size <= 1_000_000 else 3
        spent: list[list[Spent]] = [[] for _ in asking]
        with floor_client(size) as floor:
            floor.ask(asking[0].everything)
            floors = []
            for _ in range(repeats):
                for one, client, own in zip(asking, clients, spent, strict=True):
                    own.append(one.spent(client, one.everything))
                floors.append(asking[0].spent(floor, asking[0].everything).seconds)
    finally:
        for client in clients:
            client.close()
    for figures, own in zip(found, spent, strict=True):
        figures["full"], figures["full cpu"] = least(own)
        figures["floor"] = min(floors)
        figures["full over floor"] = figures["full"] / figures["floor"]


def _measure_small(asking: Sequence[Asking], found: Sequence[Figures]) -> None:
    """Listings of twenty names, on several connections, each some ahead of its answers."""
    clients = [[RawClient(one.server.address) for _ in range(_SMALL_CONNECTIONS)] for one in asking]
    frames = [get_topics_frame(1, SMALL_NAMESPACE)] * (_BURST // _SMALL_CONNECTIONS)
    least_cpu = [float("inf")] * len(asking)
    for _ in range(_BURSTS):
        for number, one in enumerate(asking):
            begun = cpu_seconds(one.server.pid)
            for client in clients[number]:
                client.send(b"".join(frames))
            for client in clients[number]:
                for _ in frames:
                    client.receive()
            least_cpu[number] = min(least_cpu[number], (cpu_seconds(one.server.pid) - begun) / _BURST)
    for each in clients:
        for client in each:
            client.close()
    for figures, cpu in zip(found, least_cpu, strict=True):
        figures["small cpu"] = cpu
