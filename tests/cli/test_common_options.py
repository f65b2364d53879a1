from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from broker_core.cli.common_options import Invocation, command, current_invocation
from tests.cli.conftest import Cli
from tests.support.files import file_with


def _alone(function: Callable[..., None], **arguments: object) -> None:
    """In a context of its own, as the command line runs a command."""
    contextvars.copy_context().run(function, **arguments)


def test_a_function_gets_both_options_and_its_call() -> None:
    seen: list[tuple[Invocation, str]] = []

    @command
    def greet(invocation: Invocation, name: Annotated[str, typer.Argument()] = "you") -> None:
        seen.append((invocation, name))

    assert list(inspect.signature(greet).parameters) == ["name", "config", "debug"]
    _alone(greet, name="x", config=Path("f.toml"), debug=True)
    assert seen == [(Invocation(Path("f.toml"), debug=True), "x")]


def test_a_function_without_a_call_can_ask_for_it() -> None:
    seen: list[Invocation] = []

    @command
    def plain() -> None:
        seen.append(current_invocation())

    _alone(plain, config=Path("f.toml"), debug=False)
    assert seen == [Invocation(Path("f.toml"))]


def test_a_function_keeps_an_option_of_its_own() -> None:
    seen: list[object] = []

    @command
    def odd(config: Annotated[str, typer.Option()] = "mine") -> None:
        seen.append(config)

    _alone(odd, config="theirs", debug=True)
    assert seen == ["theirs"]


def test_a_group_hands_its_options_down(cli: Cli, tmp_path: Path) -> None:
    wrong = file_with(tmp_path / "wrong.toml", "[pulsar]\nlisen = 1\n")
    for arguments in (
        ["topics", "--config", wrong, "show"],
        ["topics", "show", "--config", wrong],
        ["topics", "--config", "other.toml", "show", f"--config={wrong}"],
    ):
        assert "unknown key 'pulsar.lisen'" in cli(*arguments).only_error
