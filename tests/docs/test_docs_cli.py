"""docs/reference/cli.md has every command with its arguments, its options and their defaults, and no other."""

from __future__ import annotations

import re
from typing import Any

import typer

from broker_core.cli.command_tree import app
from tests.docs.pages import code_in, headings, rows, tables
from tests.support.one_test import in_one_test

PAGE = "reference/cli.md"
COMMON = {"--config", "--debug", "--help", "-h"}


def walk(command: Any, name: str = "broker-core") -> dict[str, Any]:
    """Every command that is no mere group by what is typed; the root too, for its options."""
    mere_group = getattr(command, "commands", None) and not command.invoke_without_command
    found = {} if mere_group and name != "broker-core" else {name: command}
    for word, below in getattr(command, "commands", {}).items():
        found |= walk(below, f"{name} {word}")
    return found


COMMANDS = walk(typer.main.get_command(app))


def options(cell: str) -> set[str]:
    return set(re.findall(r"`(--?[a-z0-9-]+)", cell))


def test_every_command_has_a_section() -> None:
    assert {code_in(text)[0] for text in headings(PAGE) if text.startswith("`")} == set(COMMANDS)


def test_the_common_options_are_described_once() -> None:
    (common,) = [
        table for table in tables(PAGE) if table.heading == "Command line" and table.columns[0] == "option"
    ]
    assert set().union(*(options(row[0]) for row in common.rows)) == COMMON


def of_kafka() -> set[str]:
    """The options that say which Kafka server is asked; they are described once."""
    (table,) = [
        table
        for table in tables(PAGE)
        if table.heading == "Ask a Kafka server" and table.columns[0] == "option"
    ]
    return set().union(*(options(row[0]) for row in table.rows))


@in_one_test("command", COMMANDS)
def test_the_options_of_a_command_are_all_there(command: str) -> None:
    real = {
        option
        for parameter in COMMANDS[command].params
        if parameter.param_type_name == "option" and not parameter.hidden
        for option in parameter.opts
    }
    shown: set[str] = set().union(*(options(row["option"]) for row in rows(PAGE, f"`{command}`", "option")))
    if "--bootstrap" in real:
        assert of_kafka() <= real
        real -= of_kafka()
    assert shown == real - COMMON
    if command != "broker-core":
        assert {"--config", "--debug"} <= real


@in_one_test("command", COMMANDS)
def test_a_default_is_the_default(command: str) -> None:
    by_option = {option: parameter for parameter in COMMANDS[command].params for option in parameter.opts}
    for row in rows(PAGE, f"`{command}`", "option"):
        (default,) = {by_option[option].default for option in options(row["option"])}
        if default is not None and default is not False:
            assert code_in(row["default"]) == [str(default)], f"{command} {row['option']}"


@in_one_test("command", COMMANDS)
def test_the_arguments_of_a_command_are_all_there(command: str) -> None:
    real = [
        parameter.metavar for parameter in COMMANDS[command].params if parameter.param_type_name == "argument"
    ]
    shown = ["|".join(code_in(row["argument"])) for row in rows(PAGE, f"`{command}`", "argument")]
    assert shown == [name.strip("[]") if name.startswith("[FILE") else name for name in real]
