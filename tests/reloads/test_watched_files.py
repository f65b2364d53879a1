"""Files that change are read again; a broken one leaves what was there, and is said once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.reloads import Reloads, WatchedFiles
from tests.support.eventually import eventually


class Part:
    """The text of a file, which must not be `broken`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.reads = 0
        self.text = file.read_text()

    def reload(self) -> None:
        self.reads += 1
        text = self.file.read_text()
        if text == "broken":
            raise ValueError("it is broken")
        self.text = text


@pytest.fixture
def part(tmp_path: Path) -> Part:
    file = tmp_path / "key"
    file.write_text("one")
    return Part(file)


@pytest.fixture
def reloads(part: Part) -> Reloads:
    reloads = Reloads()
    reloads.add("log file", lambda: pytest.fail("it has no files to watch"))
    reloads.add("key", part.reload, lambda: [part.file])
    return reloads


def _replaced(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


async def _looked(watched: WatchedFiles, change: Callable[[], object]) -> list[Any]:
    await asyncio.to_thread(change)
    with capture_logs() as logs:
        await watched.look()
        await watched.look()
    return [(line["log_level"], line["part"], line.get("error")) for line in logs]


async def test_a_change_is_read_once_and_a_broken_file_is_said_once(part: Part, reloads: Reloads) -> None:
    watched = WatchedFiles(reloads, period=3600)
    await watched.start()
    assert await _looked(watched, lambda: None) == []
    assert part.reads == 1, "at the start: it may have changed since it was read"
    assert await _looked(watched, lambda: _replaced(part.file, "two")) == [("info", "key", None)]
    assert (part.text, part.reads) == ("two", 2)
    assert await _looked(watched, lambda: part.file.write_text("broken")) == [
        ("error", "key", "it is broken")
    ]
    assert part.text == "two"
    ((level, _, said),) = await _looked(watched, part.file.unlink)
    assert level == "error"
    assert "No such file" in said
    assert part.text == "two"
    assert await _looked(watched, lambda: part.file.write_text("three")) == [("info", "key", None)]
    assert (part.text, part.reads) == ("three", 5)
    await watched.stop()


async def test_a_change_between_the_reading_and_the_start_is_not_missed(part: Part, reloads: Reloads) -> None:
    _replaced(part.file, "two")
    watched = WatchedFiles(reloads, period=3600)
    await watched.start()
    assert part.text == "two"
    await watched.stop()


async def test_a_link_that_is_changed(part: Part, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text(name)
    (tmp_path / "data").symlink_to("a")
    linked = Part(tmp_path / "data" / "key")
    reloads = Reloads()
    reloads.add("key", linked.reload, lambda: [linked.file])
    watched = WatchedFiles(reloads, period=3600)
    await watched.start()

    def change() -> None:
        (tmp_path / "new").symlink_to("b")
        (tmp_path / "new").replace(tmp_path / "data")

    assert await _looked(watched, change) == [("info", "key", None)]
    assert linked.text == "b"
    await watched.stop()


async def test_a_change_of_rights_alone(part: Part, reloads: Reloads) -> None:
    watched = WatchedFiles(reloads, period=3600)
    await watched.start()
    assert await _looked(
        watched, lambda: part.file.chmod(0o600 if part.file.stat().st_mode & 0o77 else 0o644)
    ) == [("info", "key", None)]
    await watched.stop()


async def test_it_looks_by_itself(part: Part, reloads: Reloads) -> None:
    watched = WatchedFiles(reloads, period=0.01)
    await watched.start()
    await asyncio.to_thread(_replaced, part.file, "two")
    await eventually(lambda: part.text == "two")
    await watched.stop()
    await watched.stop()


async def test_files_that_a_part_has_later_are_looked_at_too(tmp_path: Path) -> None:
    reloads, file, read = Reloads(), tmp_path / "key", asyncio.Event()
    loop = asyncio.get_running_loop()
    reloads.add("log file", lambda: None)
    watched = WatchedFiles(reloads, period=0.01)
    await watched.start()
    reloads.add("authentication", lambda: loop.call_soon_threadsafe(read.set), lambda: [file])
    async with asyncio.timeout(60):
        await read.wait()
    await watched.stop()
