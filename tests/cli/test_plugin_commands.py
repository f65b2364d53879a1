from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, InstallPlugin
from tests.support.files import file_with

COMMANDS = '''
"""Keeps an index of topics."""

from pydantic import BaseModel

from broker_core import hookimpl

class Settings(BaseModel):
    url: str

@hookimpl
def broker_core_settings():
    return Settings

@hookimpl
def broker_core_commands(app):
    @app.command(epilog="hello")
    def reindex(namespace: str, limit: int = 7) -> None:
        """Make the index anew."""
        from broker_core.cli.common_options import current_invocation

        invocation = current_invocation()
        print(namespace, limit, invocation.config, invocation.debug)

    @app.command()
    def where() -> None:
        """Show the settings."""
        from broker_core.cli.common_options import plugin_settings

        print(plugin_settings("indexer").url)

    @app.command()
    def check() -> None:
        """Check the index."""
        raise RuntimeError("it is broken")
'''
NO_COMMANDS = """
from broker_core import hookimpl

@hookimpl
def broker_core_list_topics(request):
    return None
"""


def test_a_plugin_adds_a_group_of_its_name(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("indexer", COMMANDS)
    assert "indexer Commands of the plugin indexer." in " ".join(cli("--help").out.split())
    said = cli("indexer", "--help")
    assert "Keeps an index of topics." in said.out
    assert "Make the index anew." in said.out
    assert "Check the index." in said.out
    assert cli("indexer", "reindex", "a/b", "--limit", "3").out == "a/b 3 None False\n"


def test_its_commands_take_the_common_options(
    cli: Cli, install_plugin: InstallPlugin, tmp_path: Path
) -> None:
    install_plugin("indexer", COMMANDS)
    config = tmp_path / "f.toml"
    assert cli("indexer", "reindex", "a/b", "--config", config).out == f"a/b 7 {config} False\n"
    assert cli("indexer", "--config", config, "reindex", "a/b", "--debug").out == f"a/b 7 {config} True\n"


def test_its_commands_get_its_settings(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("indexer", COMMANDS)
    config = file_with(tmp_path / "f.toml", '[plugins.indexer]\nurl = "db:1"\n')
    assert cli("indexer", "where", "--config", config).out == "db:1\n"
    assert "plugins.indexer.url" in cli("indexer", "where").only_error


def test_its_errors_are_one_line_too(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("indexer", COMMANDS)
    assert cli("indexer", "check").only_error.endswith("RuntimeError: it is broken")
    assert "indexer reindex: Missing argument 'namespace'" in cli("indexer", "reindex").only_error


def test_a_broken_plugin_only_fails_its_own_commands(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("indexer", COMMANDS)
    install_plugin("bad", "raise RuntimeError('no database here')\n")
    assert "indexer" in cli("--help").printed
    assert cli("config").code == 0
    assert cli("bad", "x").only_error == (
        "plugin 'bad' (distribution dist-of-bad) has no usable commands: RuntimeError: no database here"
    )


def test_a_plugin_without_commands_says_so(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("quiet", NO_COMMANDS)
    assert cli("quiet").only_error == "plugin 'quiet' (distribution dist-of-quiet) adds no commands"


def test_help_runs_no_code_of_a_plugin(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("loud", "print('I am loaded')\n")
    assert "I am loaded" not in cli("--help").out


def test_a_plugin_cannot_take_the_name_of_a_command(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("config", COMMANDS)
    assert cli("config").out.startswith("# no settings file")


ASYNC = """
import asyncio

import typer
from broker_core import hookimpl

@hookimpl
def broker_core_commands(app):
    sub = typer.Typer()

    @app.callback()
    async def top(loud: bool = False) -> None:
        await asyncio.sleep(0)
        print("top", loud)

    @app.command()
    async def hello(name: str) -> None:
        from broker_core.cli.common_options import current_invocation

        await asyncio.sleep(0)
        print("hello", name, current_invocation().config)

    @app.command()
    async def fails() -> None:
        await asyncio.sleep(0)
        raise typer.Exit(7)

    @sub.callback()
    async def below() -> None:
        await asyncio.sleep(0)
        print("below")

    @sub.command()
    async def deep() -> None:
        await asyncio.sleep(0)
        print("deep")

    app.add_typer(sub, name="sub")
"""


def test_async_commands_run(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("waits", ASYNC)
    assert cli("waits", "hello", "bob", "--config", "f.toml").out == "top False\nhello bob f.toml\n"
    assert cli("waits", "--loud", "--config", "g.toml", "hello", "bob").out == "top True\nhello bob g.toml\n"
    assert cli("waits", "sub", "deep").out == "top False\nbelow\ndeep\n"
    assert cli("waits", "fails").code == 7
