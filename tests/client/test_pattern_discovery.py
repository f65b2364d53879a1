"""Discovery by a scripted server: changes, failures, when it asks, and cancellation."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from broker_core.client import LookupClient, pattern_discovery
from broker_core.client.client_errors import ConnectionLost
from broker_core.client.pattern_discovery import PatternDiscovery, TopicsChange, namespace_of_pattern
from broker_core.errors import InvalidPattern
from broker_core.names import Mode
from tests.support.clock import time_stands
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster

PATTERN = "persistent://public/default/orders-.*"
SOON = 0.000_1


@dataclass
class _Listing:
    names: Any
    topics_hash: str
    changed: bool = True


class _Server:
    """Answers by a script, then for ever as at its end: a text of names, or an exception."""

    def __init__(self, *script: str | Exception) -> None:
        self.script = list(script)
        self.asked: list[tuple[Any, ...]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def get_topics_under_namespace(
        self,
        namespace: Any,
        mode: Mode = Mode.PERSISTENT,
        topics_pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> _Listing:
        self.asked.append((str(namespace), mode, topics_pattern, topics_hash, properties))
        await self.gate.wait()
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, Exception):
            raise answer
        if answer == topics_hash:
            return _Listing(pa.array([], pa.large_string()), answer, changed=False)
        return _Listing(pa.array(answer.split(), pa.large_string()), answer)


def _discovery(server: _Server, **options: Any) -> PatternDiscovery:
    return PatternDiscovery(server, PATTERN, {"team": "blue"}, **{"period": SOON, **options})


def _of(change: TopicsChange) -> tuple[str, str]:
    return " ".join(change.added), " ".join(change.removed)


async def test_the_first_change_has_all_and_each_other_one_what_differs() -> None:
    server = _Server("a b", "a b c", "a c", "a c", "a c d")
    async with _discovery(server) as discovery:
        assert _of(await anext(discovery)) == ("a b", "")
        assert _of(await anext(discovery)) == ("c", "")
        # Its second absence in a row is an answer that says "unchanged".
        assert _of(await anext(discovery)) == ("", "b")
        assert _of(await anext(discovery)) == ("d", "")
        assert list(discovery.topics) == ["a", "c", "d"]
        assert discovery.answers == 5
    assert [hashed for *_, hashed, _ in server.asked] == [None, "a b", "a b c", "a c", "a c"]
    assert {asked[:3] for asked in server.asked} == {("public/default", Mode.PERSISTENT, PATTERN)}
    assert all(asked[4] == {"team": "blue"} for asked in server.asked)


async def test_the_first_change_comes_where_there_is_no_topic() -> None:
    async with _discovery(_Server("")) as discovery:
        assert _of(await anext(discovery)) == ("", "")


async def test_a_topic_that_comes_back_was_never_gone() -> None:
    server = _Server("a b", "a", "a b", "a", "a b", "a b c")
    async with _discovery(server) as discovery:
        assert _of(await anext(discovery)) == ("a b", "")
        assert _of(await anext(discovery)) == ("c", "")


async def test_a_failure_removes_nothing_and_is_no_answer() -> None:
    lost = ConnectionLost("no server")
    server = _Server("a b", "a", lost, lost, TimeoutError("late"), "a b", "a", lost, "a")
    failures: list[Exception] = []
    async with _discovery(server, on_error=failures.append) as discovery:
        await anext(discovery)
        assert _of(await anext(discovery)) == ("", "b")
        assert [str(each) for each in failures] == ["no server", "no server", "late", "no server"]
        assert discovery.last_error is None
        assert len(server.asked) == 9


async def test_failures_are_kept_logged_and_asked_again_later_and_later(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _EnoughError(Exception):
        pass

    def enough(_: Exception) -> None:
        raise _EnoughError

    server = _Server(ConnectionLost("no server"))
    async with _discovery(server, period=60.0, on_error=enough) as discovery:
        time_stands(monkeypatch)
        longest = []
        for _ in range(9):
            discovery.refresh()
            with pytest.raises(_EnoughError):
                await anext(discovery)
            longest.append(_delay(discovery))
        assert str(discovery.last_error) == "no server"
    for failures, delay in enumerate(longest):
        assert min(60, 2**failures) * 0.499 <= delay <= min(60, 2**failures) * 1.001
    assert "all 0 topics stay" in caplog.text
    assert "no server" in caplog.text


async def test_a_failure_at_a_short_period_is_asked_again_before_long() -> None:
    server = _Server(*[ConnectionLost("no server")] * 6, "a")
    async with _discovery(server, period=0.000_01) as discovery:
        assert _of(await anext(discovery)) == ("a", "")


def _delay(discovery: PatternDiscovery) -> float:
    return discovery._due_at - asyncio.get_running_loop().time()


async def test_periods_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    async with _discovery(_Server("a", "b"), period=60.0) as discovery:
        time_stands(monkeypatch)
        delays = set()
        for _ in range(5):
            discovery.refresh()
            discovery._answers = 0
            await anext(discovery)
            delays.add(_delay(discovery))
        assert len(delays) == 5
        assert all(53.9 < delay < 66.1 for delay in delays)


async def test_refresh_asks_now() -> None:
    async with _discovery(_Server("a", "a b"), period=3600.0) as discovery:
        await anext(discovery)
        waiting = asyncio.create_task(anext(discovery))
        await asyncio.sleep(0)
        assert not waiting.done()
        discovery.refresh()
        assert _of(await waiting) == ("b", "")


async def test_close_ends_the_iteration() -> None:
    seen = []
    discovery = _discovery(_Server("a"), period=3600.0)
    async with discovery:
        async for change in discovery:
            seen.append(_of(change))
            asyncio.get_running_loop().call_soon(discovery.close)
    assert seen == [("a", "")]
    with pytest.raises(StopAsyncIteration):
        await anext(discovery)


async def test_a_cancelled_question_is_asked_again_and_loses_nothing() -> None:
    server = _Server("a b", "a b c")
    async with _discovery(server, period=3600.0) as discovery:
        await anext(discovery)
        server.gate.clear()
        discovery.refresh()
        waiting = asyncio.create_task(anext(discovery))
        await eventually(lambda: len(server.asked) == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert list(discovery.topics) == ["a", "b"]
        server.gate.set()
        # It is still due: nobody waits for an hour.
        assert _of(await anext(discovery)) == ("c", "")


async def test_one_task_iterates() -> None:
    async with _discovery(_Server("a"), period=3600.0) as discovery:
        await anext(discovery)
        waiting = asyncio.create_task(anext(discovery))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="another task"):
            await anext(discovery)
        waiting.cancel()


async def test_large_answers_are_compared_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.client.pattern_discovery._INLINE", 2)
    async with _discovery(_Server("a b", "a b c d")) as discovery:
        assert _of(await anext(discovery)) == ("a b", "")
        assert _of(await anext(discovery)) == ("c d", "")


@pytest.mark.parametrize(
    ("pattern", "namespace"),
    [
        ("persistent://public/default/orders-.*", "public/default"),
        ("public/default/.*", "public/default"),
        ("^persistent://a.b/c-d/[^/]+$", "a.b/c-d"),
        ("non-persistent://t/n/(a|b)/c", "t/n"),
    ],
)
def test_the_namespace_is_that_of_the_pattern(pattern: str, namespace: str) -> None:
    assert str(namespace_of_pattern(pattern)) == namespace


@pytest.mark.parametrize("pattern", ["orders-.*", "", "public/orders-.*", "a.*/b/c", "http://a/b/c"])
def test_a_pattern_must_name_its_namespace(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        PatternDiscovery(_Server(""), pattern)


async def test_periods_and_confirmations_must_make_sense() -> None:
    with pytest.raises(ValueError, match="period"):
        _discovery(_Server(""), period=0)
    with pytest.raises(ValueError, match="1 answer"):
        _discovery(_Server(""), confirmations=0)


# -- what the server tells


@dataclass
class _Watched:
    """A cluster, a client that watches it, and the changes it got; each question after the first is an hour away."""

    cluster: FakeCluster
    changes: PatternDiscovery
    said: list[bool]
    topics: set[str]

    @property
    def names(self) -> set[str]:
        return {name for name in self.cluster.topics[NAMESPACE] if name.startswith("persistent://")}

    async def are_right(self) -> None:
        while self.topics != self.names:
            change = await anext(self.changes)
            assert not self.topics & set(change.added)
            assert self.topics >= set(change.removed)
            self.topics = (self.topics | set(change.added)) - set(change.removed)

    def change(self, chosen: random.Random) -> None:
        name = f"persistent://{NAMESPACE}/t-{chosen.randint(0, 20)}"
        is_there = name in self.names
        self.cluster.change(NAMESPACE, new=() if is_there else [name], deleted=[name] if is_there else [])


NAMESPACE = "public/default"


@asynccontextmanager
async def _watched(**flags: bool) -> AsyncIterator[_Watched]:
    offered = {"topic_watchers": True, "reconcile": True, **flags}
    async with FakeCluster(**offered) as cluster, LookupClient(cluster.url) as client:
        cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-{number}" for number in range(5)])
        said: list[bool] = []
        discovery = PatternDiscovery(
            client,
            f"persistent://{NAMESPACE}/t-.*",
            period=3600.0,
            confirmations=1,
            watches=client,
            on_watching=said.append,
        )
        async with discovery, asyncio.timeout(60):
            watched = _Watched(cluster, discovery, said, set())
            await watched.are_right()
            cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-first"])
            discovery.refresh()
            await watched.are_right()
            yield watched


@pytest.mark.parametrize("inline", [pattern_discovery._INLINE, 2], ids=["few", "many"])
async def test_each_change_that_is_told_is_taken_in_without_a_question(
    inline: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_discovery, "_INLINE", inline)
    async with _watched() as watched:
        await eventually(lambda: watched.changes.is_watching)
        asked = len(watched.cluster.asked)
        chosen = random.Random(1)
        for _ in range(80):
            watched.change(chosen)
            await watched.are_right()
        assert watched.changes.topics.names.to_pylist() == sorted(watched.topics)
        assert len(watched.cluster.asked) <= asked + 1, (
            "the first watch may have begun after the first answer"
        )
        assert watched.said == [True]
    assert not watched.changes.is_watching


@pytest.mark.parametrize("fault", ["dropped", "doubled", "held back"])
async def test_updates_that_do_not_fit_end_in_a_question(fault: str) -> None:
    async with _watched() as watched:
        await eventually(lambda: watched.changes.is_watching)
        chosen, held = random.Random(2), list[bytes]()

        def harm(frame: bytes) -> Sequence[bytes]:
            if chosen.random() > 0.2:
                return [frame, *(held.pop() for _ in range(len(held)))]
            if fault == "held back":
                held.append(frame)
            return [frame, frame] if fault == "doubled" else []

        watched.cluster.fault = harm
        for _ in range(100):
            watched.change(chosen)
            await asyncio.sleep(0)
        watched.cluster.fault = lambda frame: [frame]
        watched.cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-last"])
        await watched.are_right()


async def test_a_watch_that_is_lost_begins_again_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_discovery, "_FIRST_RETRY", 0.01)
    async with _watched() as watched:
        await eventually(lambda: watched.changes.is_watching)
        for number in range(3):
            watched.cluster.lose_watchers()
            watched.cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-new-{number}"])
            await watched.are_right()
            await eventually(lambda: watched.changes.is_watching)
        assert watched.said[:3] == [True, False, True]


async def test_a_server_whose_hashes_never_fit_is_asked_each_period() -> None:
    async with _watched() as watched:
        await eventually(lambda: watched.changes.is_watching)
        watched.cluster.fault = lambda frame: [re.sub(rb"\x22\x08[0-9a-f]{8}", b"\x22\x0800000000", frame)]
        for number in range(2 * pattern_discovery._MISFITS):
            if watched.said == [True, False]:
                break
            watched.cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-new-{number}"])
            await watched.are_right()
        assert watched.said == [True, False]
        assert not watched.changes.is_watching
        await eventually(lambda: not watched.cluster.watchers)


async def test_without_watches_the_server_is_asked_each_period() -> None:
    async with _watched(reconcile=False) as watched:
        await eventually(lambda: watched.said == [False])
        watched.cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-new"])
        watched.changes.refresh()
        await watched.are_right()


@pytest.mark.parametrize("options", [{"mode": Mode.ALL}, {"properties": {"region": "eu"}}])
async def test_a_question_that_no_watch_has_is_not_watched(options: dict[str, Any]) -> None:
    said: list[bool] = []
    async with (
        FakeCluster(topic_watchers=True, reconcile=True) as cluster,
        LookupClient(cluster.url) as client,
    ):
        pattern = f"persistent://{NAMESPACE}/.*"
        discovery = PatternDiscovery(
            client, pattern, period=SOON, watches=client, on_watching=said.append, **options
        )
        async with discovery:
            await anext(discovery)
            cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t"])
            assert (await anext(discovery)).added == [f"persistent://{NAMESPACE}/t"]
            assert not discovery.is_watching
        assert not cluster.watchers
    assert said == [False]
