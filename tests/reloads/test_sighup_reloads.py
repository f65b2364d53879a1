from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from structlog.testing import capture_logs

from broker_core.reloads import Reloads
from tests.support.eventually import eventually


async def test_all_parts_are_read_again_in_order_and_one_line_says_so() -> None:
    reloads = Reloads()
    threads: list[str] = []
    for name in ("log file", "certificates"):
        reloads.add(name, lambda: threads.append(threading.current_thread().name))
    with capture_logs() as logs:
        assert not (await reloads.reload_all()).failed
    assert len(threads) == 2
    assert threading.current_thread().name not in threads
    assert logs == [{"event": "reloaded", "log_level": "info", "reloaded": ["log file", "certificates"]}]


async def test_a_part_that_was_read_again_is_told() -> None:
    reloads = Reloads()
    told: list[int] = []
    reloads.add("good", lambda: None)
    reloads.add("bad", lambda: 1 / 0)
    reloads.on_reload.append(lambda: told.append(1))
    await reloads.reload_all()
    assert told == [1]


async def test_what_fails_keeps_nobody_else_from_it() -> None:
    reloads = Reloads()
    done: list[int] = []

    def fails() -> None:
        raise OSError("no space")

    reloads.add("a", fails)
    reloads.add("b", lambda: done.append(1))
    with capture_logs() as logs:
        assert (await reloads.reload_all()).failed
    assert done == [1]
    assert reloads.failing == {"a": True, "b": False}
    (line,) = logs
    assert (line["log_level"], line["reloaded"], line["failed"]) == ("error", ["b"], {"a": "no space"})


async def test_nothing_to_read_is_said_too() -> None:
    with capture_logs() as logs:
        assert not (await Reloads().reload_all()).failed
    assert [line["event"] for line in logs] == ["reloaded"]
    assert "restart" in logs[0]["note"]


async def test_one_at_a_time() -> None:
    reloads = Reloads()
    go_on, running, most = threading.Event(), [0], [0]

    def slow() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        go_on.wait()
        running[0] -= 1

    reloads.add("slow", slow)
    both = [asyncio.create_task(reloads.reload_all()) for _ in range(2)]
    await eventually(lambda: running[0] == 1)
    go_on.set()
    assert [each.failed for each in await asyncio.gather(*both)] == [{}, {}]
    assert most == [1]


async def test_a_part_has_files_and_is_reloaded_alone(tmp_path: Path) -> None:
    reloads = Reloads()
    done: list[str] = []
    reloads.add("a", lambda: done.append("a"), lambda: [tmp_path / "a"])
    reloads.add("b", lambda: done.append("b"))
    assert reloads.parts == ("a", "b")
    assert reloads.files_of("a") == (tmp_path / "a",)
    assert reloads.files_of("b") == ()
    await reloads.reload_part("a")
    assert done == ["a"]
