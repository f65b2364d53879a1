from __future__ import annotations

import sys

import pytest
import typer

from broker_core import hookimpl
from broker_core.cli.help_format import without_markup
from broker_core.cli.plugin_commands import commands_of
from tests.cli.conftest import Cli


def test_tags_go_and_what_is_escaped_stays() -> None:
    assert (
        without_markup(r"[bold]Examples[/bold] [dim]# a[/dim] 'a/\[b]+' [X] []")
        == "Examples # a 'a/[b]+' [X] []"
    )


def test_in_a_file_help_is_plain_and_examples_can_be_copied(cli: Cli) -> None:
    said = cli("topics", "set-properties", "--help").out
    assert said.startswith("Usage: broker-core topics set-properties")
    assert "[bold]" not in said
    assert "\x1b" not in said
    assert "\nExamples:\n" in said
    line = "  broker-core topics set-properties public/default --pattern 'public/default/orders-.*' region=eu --dry-run"
    assert line in said.splitlines()


def test_the_first_paragraph_is_whole_in_a_list(cli: Cli) -> None:
    said = " ".join(cli("--help").out.split())
    assert (
        "list Ask a server for the topics of a namespace, as a consumer with a topics pattern does." in said
    )


def test_it_is_whole_in_the_group_of_a_plugin_too() -> None:
    class Plugin:
        @hookimpl
        def broker_core_commands(self, app: typer.Typer) -> None:
            group = typer.Typer(help="Things of this plugin that nobody could name in forty-five characters.")

            @group.command("alone")
            @app.command("build")
            def build() -> None:
                """Build all the things that are said to be built in a sentence of many words.

                More of it.
                """

            app.add_typer(group, name="things")

    group = commands_of("acme", Plugin())
    said = {name: one.get_short_help_str() for name, one in group.commands.items()}
    assert said == {
        "build": "Build all the things that are said to be built in a sentence of many words.",
        "things": "Things of this plugin that nobody could name in forty-five characters.",
    }


def test_on_a_terminal_rich_shows_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    said = cli("list", "--help").out
    assert "Examples" in said
    assert "╭" in said
    assert "[bold]" not in said
