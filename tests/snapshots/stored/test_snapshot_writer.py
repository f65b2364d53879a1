"""When snapshots are stored: once however often something changes, seldom, and at the end for a bounded time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.snapshots.stored.snapshot_writer import SnapshotWriter
from broker_core.snapshots.stored.stored_snapshots import Pace
from tests.support.eventually import eventually

KEY = (NamespaceName("t", "n"), Mode.PERSISTENT)
OTHER = (NamespaceName("t", "m"), Mode.PERSISTENT)


class Thing:
    """Something to be stored, by a name."""

    def __init__(self, name: str, worth: bool = True) -> None:
        self.name = name
        self.is_worth_it = worth


class Folder:
    """Takes what is written, and may be held up."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.swept = 0
        self.go = threading.Event()
        self.go.set()
        self.fail: Exception | None = None

    def write(self, thing: Any, *, pace: Callable[[], Pace]) -> int | None:
        if self.fail is not None:
            raise self.fail
        while not self.go.wait(0.001):
            if pace() is Pace.ENDED:
                return None
        self.written.append(thing.name)
        return 1

    def sweep(self) -> None:
        self.swept += 1


def writer_of(folder: Folder, things: dict[Any, Thing], **pauses: float) -> SnapshotWriter[Any]:
    pauses = {"soon": 0.0, "pause": 0.0} | pauses
    return SnapshotWriter(folder, things.get, lambda: list(things.values()), **pauses)  # type: ignore[arg-type]


async def test_what_is_there_when_it_is_due_is_written() -> None:
    folder, things = Folder(), {KEY: Thing("old")}
    writer = writer_of(folder, things, soon=0.01)
    for _ in range(10):
        writer.changed(KEY)
    things[KEY] = Thing("new")
    await eventually(lambda: folder.written == ["new"])
    await eventually(lambda: folder.swept == 1)
    writer.changed(KEY)
    await eventually(lambda: folder.written == ["new", "new"])
    assert folder.swept == 1
    things.clear()
    await writer.stop(1)


async def test_the_next_time_waits_for_the_pause() -> None:
    folder, things = Folder(), {KEY: Thing("one"), OTHER: Thing("two")}
    writer = writer_of(folder, things, pause=3600.0)
    writer.changed(KEY)
    await eventually(lambda: folder.written == ["one"])
    await eventually(lambda: writer._writing is None)
    writer.changed(KEY)
    writer.changed(OTHER)  # is not held up by the first
    await eventually(lambda: folder.written == ["one", "two"])
    things.clear()
    await writer.stop(1)
    assert folder.written == ["one", "two"]


async def test_what_is_gone_or_not_worth_it_is_not_written() -> None:
    folder, things = Folder(), {KEY: Thing("small", worth=False)}
    writer = writer_of(folder, things)
    writer.changed(KEY)
    writer.changed(OTHER)
    await eventually(lambda: not writer._due)
    await writer.stop(1)
    assert folder.written == []


async def test_at_the_end_all_is_written_and_nothing_after() -> None:
    folder, things = Folder(), {KEY: Thing("one"), OTHER: Thing("two")}
    writer = writer_of(folder, things, soon=3600.0)
    writer.changed(KEY)
    await writer.stop(10)
    assert folder.written == ["one", "two"]
    writer.changed(KEY)
    assert not writer._due


async def test_the_end_does_not_wait_for_a_slow_disk() -> None:
    folder, things = Folder(), {KEY: Thing("one")}
    writer = writer_of(folder, things)
    folder.go.clear()
    writer.changed(KEY)
    await eventually(lambda: writer._writing is not None)
    await asyncio.wait_for(writer.stop(0.05), 30)
    assert folder.written == []
    await eventually(lambda: writer._writing is None)


async def test_an_error_nobody_thought_of_is_logged_and_the_next_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, things = Folder(), {KEY: Thing("one")}
    writer = writer_of(folder, things)
    folder.fail = ZeroDivisionError()
    writer.changed(KEY)
    await eventually(lambda: "storing a snapshot failed" in capsys.readouterr().out)
    folder.fail = None
    writer.changed(KEY)
    await eventually(lambda: folder.written == ["one"])
    await writer.stop(1)
