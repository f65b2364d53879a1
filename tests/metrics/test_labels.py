from __future__ import annotations

from broker_core.metrics.labels import CALL_OUTCOMES, LISTINGS
from broker_core.plugin_api.hookspecs import HookSpecs
from broker_core.plugins import Dispatcher, PluginRegistry
from tests.support.plugins import PluginOf


def test_errors_have_no_plan() -> None:
    assert [plan for outcome, plan in LISTINGS if outcome == "error"] == ["unknown"]
    assert len(LISTINGS) == len(set(LISTINGS)) == 15


def test_every_hook_may_fail() -> None:
    assert all("error" in outcomes for outcomes in CALL_OUTCOMES.values())


def test_each_hook_that_is_asked_again_and_again_has_its_outcomes() -> None:
    hooks = {name.removeprefix("broker_core_") for name in vars(HookSpecs) if name.startswith("broker_core_")}
    once = {"depends_on", "settings", "startup", "change_log", "shutdown", "commands", "check", "problems"}
    assert hooks - once == set(CALL_OUTCOMES)
    every = PluginOf(**{hook: lambda: None for hook in hooks - once})
    (asked,) = Dispatcher(PluginRegistry.load(given={"p": every})).hooks().values()
    assert set(asked) == set(CALL_OUTCOMES)
