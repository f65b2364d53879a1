"""The facts of each hook: declared once, and true of the broker's behaviour."""

from __future__ import annotations

import ast
from pathlib import Path

import broker_core
from broker_core.plugin_api import PROJECT
from broker_core.plugin_api.hook_facts import HookFacts, facts, facts_of
from broker_core.plugin_api.hookspecs import HOOK_FACTS, HookSpecs
from broker_core.plugins import Dispatcher, PluginRegistry
from tests.support.plugins import PluginOf

PACKAGE = Path(broker_core.__file__).parent


def test_facts_are_those_of_the_specification() -> None:
    class Specs:
        @facts("yes", "no", shapes_answers=True)
        def p_one(self) -> None: ...

        def p_other(self) -> None: ...

        def not_a_hook(self) -> None: ...

    assert facts_of(Specs, "p_") == {
        "p_one": HookFacts(("yes", "no"), shapes_answers=True),
        "p_other": HookFacts(),
    }


def test_each_hook_has_facts() -> None:
    assert list(HOOK_FACTS) == [name for name in vars(HookSpecs) if name.startswith(f"{PROJECT}_")]


def test_the_hooks_without_outcomes() -> None:
    rarely = {"depends_on", "settings", "startup", "reloaded", "change_log", "shutdown", "commands", "check"}
    assert {name for name, known in HOOK_FACTS.items() if not known.outcomes} == {
        f"{PROJECT}_{hook}" for hook in {*rarely, "problems", "http_routes"}
    }


def test_every_hook_that_has_outcomes_gets_a_caller_and_may_fail() -> None:
    again = {hook.removeprefix(f"{PROJECT}_") for hook, known in HOOK_FACTS.items() if known.outcomes}
    every = PluginOf(**{hook: lambda: None for hook in again})
    (outcomes,) = Dispatcher(PluginRegistry.load(given={"p": every})).outcomes().values()
    assert set(outcomes) == again
    assert all(words[-1] == "error" for words in outcomes.values())


def test_somebody_asks_each_hook() -> None:
    """A hook that is declared only would be accepted of plugins, and never called."""
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    trees = [ast.parse(text) for text in texts if any(hook in text for hook in HOOK_FACTS)]
    named = {
        node.attr if isinstance(node, ast.Attribute) else node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Constant)
    }
    assert set(HOOK_FACTS) <= named
