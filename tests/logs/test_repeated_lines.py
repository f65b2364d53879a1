from __future__ import annotations

import threading
from typing import Any

import pytest

from broker_core.logs.repeated_lines import RepeatedLines, reason_of
from tests.support.clock import SetClock

OURS = "broker_core.servers.connection.client_connection"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def bad_frame(peer: int) -> dict[str, Any]:
    return {"event": "bad frame", "reason": "bad_frame", "peer": peer, "level": "info"}


def test_the_first_is_shown_and_the_others_are_counted(clock: SetClock) -> None:
    repeats = RepeatedLines(5.0, clock=clock)
    assert [repeats.folds(OURS, bad_frame(peer)) for peer in range(300)] == [False] + [True] * 299
    assert repeats.due() == []
    clock.now += 5.0
    assert repeats.due() == [{**bad_frame(299), "repeats": 299}]
    # The count was a line too: what follows is counted for the next interval.
    assert repeats.folds(OURS, bad_frame(7))
    assert repeats.folds(OURS, bad_frame(8))
    clock.now += 4.9
    assert repeats.due() == []
    clock.now += 0.2
    assert repeats.due() == [{**bad_frame(8), "repeats": 2}]


def test_a_single_one_is_shown_as_it_is(clock: SetClock) -> None:
    repeats = RepeatedLines(5.0, clock=clock)
    assert not repeats.folds(OURS, bad_frame(1))
    assert repeats.folds(OURS, bad_frame(2))
    assert repeats.due(everything=True) == [bad_frame(2)]


def test_after_a_silence_it_is_a_first_one_again(clock: SetClock) -> None:
    repeats = RepeatedLines(5.0, clock=clock)
    assert not repeats.folds(OURS, bad_frame(1))
    clock.now += 5.0
    assert not repeats.folds(OURS, bad_frame(2))
    assert repeats.folds(OURS, bad_frame(3))
    clock.now += 500.0
    # Nobody had asked what is due: none of what was counted is lost.
    assert repeats.folds(OURS, bad_frame(4))
    assert repeats.due() == [{**bad_frame(4), "repeats": 2}]
    clock.now += 5.0
    assert repeats.due() == []
    assert not repeats._reasons


def test_reasons_are_told_apart() -> None:
    repeats = RepeatedLines()
    lines = [
        (OURS, bad_frame(1)),
        (OURS, {**bad_frame(1), "reason": "stalled"}),
        (OURS, {**bad_frame(1), "event": "peer was silent"}),
        (OURS, {**bad_frame(1), "level": "error"}),
        ("broker_core.servers.http.server", bad_frame(1)),
        ("broker_core.plugins.call.hook_caller", {"event": "plugin failed", "plugin": "a"}),
        ("broker_core.plugins.call.hook_caller", {"event": "plugin failed", "plugin": "b"}),
    ]
    assert not any(repeats.folds(logger, event) for logger, event in lines)
    assert all(repeats.folds(logger, event) for logger, event in lines)


def test_what_differs_each_time_is_no_part_of_a_reason() -> None:
    first = {"event": "Exception in callback <Task at 0x7f01>\nhandle: <Handle>", "level": "error"}
    second = {"event": "Exception in callback <Task at 0x7f02>\nhandle: <Other>", "level": "error"}
    assert reason_of("asyncio", first) == reason_of("asyncio", second) is not None


@pytest.mark.parametrize(
    "logger",
    [
        "",
        "a-plugin",
        "broker_core_postgres.connect.server_pools",
        "broker_core.cli.server_process.server_process",
        "broker_core.reloads.sighup_reloads",
        "aiohttpd",
    ],
)
def test_what_no_client_causes_is_never_counted(logger: str) -> None:
    repeats = RepeatedLines()
    assert not any(repeats.folds(logger, {"event": "x"}) for _ in range(3))


def test_the_number_of_reasons_is_bounded(clock: SetClock) -> None:
    repeats = RepeatedLines(5.0, max_reasons=10, clock=clock)
    folded = [repeats.folds(OURS, {"event": "x", "reason": str(number)}) for number in range(100)]
    assert folded == [False] * 11 + [True] * 89
    assert len(repeats._reasons) == 11
    clock.now += 5.0
    assert [line["repeats"] for line in repeats.due()] == [89]


def test_a_traceback_is_not_kept() -> None:
    repeats = RepeatedLines()
    for _ in range(3):
        repeats.folds(OURS, {"event": "x", "exc_info": ValueError()})
    assert repeats.due(everything=True) == [{"event": "x", "repeats": 2}]


def test_counts_of_threads_add_up() -> None:
    repeats = RepeatedLines()
    shown: list[int] = []

    def say() -> None:
        shown.append(sum(not repeats.folds(OURS, bad_frame(1)) for _ in range(5000)))

    threads = [threading.Thread(target=say) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (line,) = repeats.due(everything=True)
    assert sum(shown) + line["repeats"] == 20_000
