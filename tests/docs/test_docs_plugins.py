"""The reference of each plugin has all of its settings and commands, with their options, arguments and defaults."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final, NamedTuple

import pytest
from pydantic import BaseModel

from broker_core.cli.plugin_commands import commands_of
from broker_core_postgres.plugin import PostgresPlugin
from broker_core_postgres.settings import PostgresSettings
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.settings import SparkSettings
from tests.docs.pages import code_in, headings, named, rows, tables

#: Options of every command, which are described once.
COMMON: Final = {"--config", "--debug", "--help"}


class Documented(NamedTuple):
    """A plugin, the model of its settings with those that must be given, and its page."""

    plugin: object
    model: type[BaseModel]
    required: dict[str, str]

    @property
    def name(self) -> str:
        return type(self.plugin).__name__.removesuffix("Plugin").lower()

    @property
    def page(self) -> str:
        return f"reference/{self.name}.md"

    def commands(self) -> dict[str, Any]:
        """Every command by what is typed."""

        def walk(command: Any, name: str) -> dict[str, Any]:
            below = getattr(command, "commands", None)
            if not below:
                return {name: command}
            return {
                key: value for word in below for key, value in walk(below[word], f"{name} {word}").items()
            }

        return walk(commands_of(self.name, self.plugin), f"broker-core {self.name}")

    def settings(self) -> dict[str, tuple[str, ...]]:
        """The row of each setting by its key."""
        return {
            code_in(row[0])[0]: row
            for table in tables(self.page)
            if table.columns == ("key", "type", "default", "meaning")
            for row in table.rows
        }


PLUGINS: Final = [
    Documented(PostgresPlugin(), PostgresSettings, {}),
    Documented(SparkPlugin(), SparkSettings, {"store": "a"}),
]
OF_EACH: Final = pytest.mark.parametrize("documented", PLUGINS, ids=lambda each: each.name)


@OF_EACH
def test_every_setting_is_there(documented: Documented) -> None:
    assert set(documented.settings()) == set(documented.model.model_fields)


@pytest.mark.parametrize(
    ("documented", "key"),
    [pytest.param(each, key, id=f"{each.name}.{key}") for each in PLUGINS for key in each.model.model_fields],
)
def test_a_default_is_the_default(documented: Documented, key: str) -> None:
    field = documented.model.model_fields[key]
    _, kind, shown, meaning = documented.settings()[key]
    assert kind
    assert meaning.endswith((".", "`)."))
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    if default is None:
        assert shown == ("required" if field.is_required() else "none")
        return
    (text,) = code_in(shown)
    written = tomllib.loads(f"value = {text}")["value"]
    assert getattr(documented.model.model_validate(documented.required | {key: written}), key) == default
    choices = re.search(r"Literal\[(.*?)\]", str(field.annotation))
    if choices:
        assert code_in(kind) == [f'"{name}"' for name in re.findall(r"'([^']+)'", choices[1])]


@OF_EACH
def test_every_command_has_a_section(documented: Documented) -> None:
    shown = [code_in(text)[0] for text in headings(documented.page) if text.startswith("`broker-core ")]
    assert sorted(shown) == sorted(documented.commands())


@pytest.mark.parametrize(
    ("documented", "command"),
    [pytest.param(each, command, id=command) for each in PLUGINS for command in each.commands()],
)
def test_the_options_and_arguments_of_a_command_are_all_there(documented: Documented, command: str) -> None:
    parameters = documented.commands()[command].params
    by_option = {
        parameter.opts[0]: parameter for parameter in parameters if parameter.param_type_name == "option"
    }
    heading = f"`{command}`"
    shown = {
        re.findall(r"`(--[a-z-]+)", row["option"])[0]: row for row in rows(documented.page, heading, "option")
    }
    assert set(shown) == set(by_option) - COMMON
    for option, row in shown.items():
        parameter = by_option[option]
        assert row["meaning"].endswith(".")
        assert (row["default"] == "required") == parameter.required, option
        if parameter.default not in (None, False) and not parameter.required:
            assert code_in(row["default"]) == [str(parameter.default)], option
    arguments = [parameter.metavar for parameter in parameters if parameter.param_type_name == "argument"]
    shown_arguments = named(documented.page, heading, "argument")
    assert "|".join(shown_arguments).startswith("|".join(arguments))
    assert bool(shown_arguments) is bool(arguments)
