from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from broker_core.cli.command_tree import app
from broker_core.cli.deferred_commands import DeferredCommand
from tests.support.one_test import in_one_test


def deferred(group: Any, above: str = "") -> Iterator[tuple[str, DeferredCommand]]:
    for name, command in group.commands.items():
        if isinstance(command, DeferredCommand):
            yield f"{above}{name}", command
        if hasattr(command, "commands"):
            yield from deferred(command, f"{above}{name} ")


COMMANDS = dict(deferred(typer.main.get_command(app)))


def test_all_commands_of_the_core_are_deferred() -> None:
    assert len(COMMANDS) > 12
    assert {"serve", "topics", "topics show"} <= set(COMMANDS)


@in_one_test("name", COMMANDS)
def test_the_help_of_a_list_is_the_first_paragraph_of_the_commands_own(name: str) -> None:
    command = COMMANDS[name]
    own: str = command.callback.__doc__ if not hasattr(command, "commands") else command._load().help
    assert command.help == " ".join(own.split("\n\n", maxsplit=1)[0].split())
    assert command.name == name.rpartition(" ")[2]


def test_it_is_loaded_for_what_is_its_own_and_once() -> None:
    loaded: list[str] = []

    class Real:
        params = ("a",)

    def load() -> Real:
        loaded.append("now")
        return Real()

    command = DeferredCommand("x", "What it does, in so many words.", load)
    assert (command.name, command.help, command.hidden) == ("x", "What it does, in so many words.", False)
    assert command.get_short_help_str() == command.help
    assert command.get_short_help_str(10) == command.help
    assert not loaded
    assert command.params == ("a",)
    assert not hasattr(command, "commands")
    assert loaded == ["now"]


def test_a_help_may_be_asked_for_when_it_is_shown() -> None:
    asked: list[str] = []
    command = DeferredCommand("x", lambda: asked.append("now") or "help", object)  # type: ignore[func-returns-value]
    assert not asked
    assert command.help == "help"
