"""Statistics of the calls of a plugin."""

from __future__ import annotations

from broker_core.plugins.call.hook_caller import RECENT, HookStatistics


def test_before_the_first_call() -> None:
    assert HookStatistics().describe() == {
        "calls": 0,
        "answers": {},
        "failures": {},
        "passed_over": 0,
        "stale": 0,
        "last_error": None,
        "p50_ms": None,
        "p99_ms": None,
    }


def test_answers_and_failures() -> None:
    statistics = HookStatistics()
    statistics.answered("success", 0.001)
    statistics.answered("pass_through", 0.002)
    statistics.failed("plugin_error", "it broke", 0.003)
    statistics.failed("plugin_breaker", "it is open", None)
    described = statistics.describe()
    assert described["calls"] == 4
    assert described["answers"] == {"success": 1, "pass_through": 1, "error": 2}
    assert described["failures"] == {"plugin_error": 1, "plugin_breaker": 1}
    assert described["last_error"] == "it is open"
    assert (described["p50_ms"], described["p99_ms"]) == (2.0, 3.0)


def test_latencies_are_of_the_last_calls() -> None:
    statistics = HookStatistics()
    statistics.answered("success", 100.0)
    for _ in range(RECENT):
        statistics.answered("success", 0.001)
    assert statistics.percentile(100) == 0.001
