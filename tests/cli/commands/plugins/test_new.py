"""`broker-core plugins new`."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, InstallPlugin


def test_it_says_how_to_go_on(cli: Cli) -> None:
    said = cli("plugins", "new", "acme-topics")
    assert said.code == 0
    assert said.out.startswith("wrote acme-topics, a plugin that runs:\n  cd acme-topics\n")
    assert not said.err
    assert Path("acme-topics/pyproject.toml").is_file()


def test_it_refuses_in_one_line(cli: Cli, install_plugin: InstallPlugin) -> None:
    cli("plugins", "new", "acme-topics")
    again = cli("plugins", "new", "acme-topics")
    assert (again.code, again.only_error) == (1, "acme-topics is there already")
    assert (
        cli("plugins", "new", "serve").refused(2)
        == "'serve' cannot name a plugin: a command of broker-core has this name"
    )
    install_plugin("acme-filter", "")
    assert (
        cli("plugins", "new", "acme_filter").refused(1)
        == "a plugin 'acme-filter' is installed already, by dist-of-acme-filter 1.2.3"
    )
    assert "Missing argument 'NAME'" in cli("plugins", "new").only_error
    assert [path.name for path in Path().iterdir()] == ["acme-topics"]


def test_the_plugins_are_still_shown(cli: Cli, install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "")
    assert "mine" in cli("plugins").out
    assert '"mine"' in cli("plugins", "--format", "json").out
    assert "mine" not in cli("plugins", "new", "acme-topics").out
    assert cli("plugins", "renew").code == 2
