"""The broker's settings in a command of a plugin."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, InstallPlugin
from tests.support.files import file_with

READING = """
from pydantic import BaseModel

from broker_core import hookimpl
from broker_core.plugin_cli import broker_settings

class Settings(BaseModel):
    property_keys: tuple[str, ...] = ("team",)

@hookimpl
def broker_core_settings():
    return Settings

@hookimpl
def broker_core_list_topics(request):
    return None

@hookimpl
def broker_core_commands(app):
    @app.command()
    def show() -> None:
        found = broker_settings()
        print(found.file, found.catalog.name, found.max_pattern_length, sorted(found.property_keys), found.plugins)

    @app.command()
    def keys() -> None:
        print(sorted(broker_settings().plugin_property_keys()))
"""


def test_a_command_reads_them(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("reading", READING)
    assert cli("reading", "show").out == "None broker-core.sqlite 1024 [] ()\n"
    config = file_with(
        tmp_path / "f.toml",
        '[catalog]\npath = "x.sqlite"\nproperty_keys = ["region"]\n[patterns]\nmax_length = 7\n'
        '[plugins]\nenabled = ["reading"]\n',
    )
    assert cli("reading", "show", "--config", config).out == f"{config} x.sqlite 7 ['region'] ('reading',)\n"
    assert cli("reading", "keys", "--config", config).out == "['team']\n"


def test_what_is_wrong_with_them_is_one_line(cli: Cli, install_plugin: InstallPlugin, tmp_path: Path) -> None:
    install_plugin("reading", READING)
    config = file_with(tmp_path / "f.toml", "[patterns]\nmax_length = 0\n")
    assert "patterns.max_length" in cli("reading", "show", "--config", config).only_error
    config.write_text('[plugins]\nenabled = ["nobody"]\n')
    assert "nobody" in cli("reading", "keys", "--config", config).only_error
