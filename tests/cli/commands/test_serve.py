from __future__ import annotations

import socket
from pathlib import Path

import pytest

from broker_core.cli.commands.serve import serve_options
from broker_core.settings import load_settings
from tests.cli.conftest import Cli, InstallPlugin


def test_options_override_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_settings(
        environment={}, options=serve_options("[::1]:0", "127.0.0.1:9", Path("topics.sqlite"))
    )
    assert str(loaded.settings.pulsar.listen) == "[::1]:0"
    assert loaded.settings.http is not None
    assert loaded.settings.http.listen.port == 9
    assert loaded.settings.catalog.path == tmp_path / "topics.sqlite"
    assert load_settings(environment={}, options=serve_options(None, None, None)).settings.http is None


@pytest.mark.parametrize("option", ["--pulsar", "--http"])
def test_a_port_in_use_is_one_line(cli: Cli, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = taken.getsockname()
        other = ["--pulsar", "127.0.0.1:0"] if option == "--http" else []
        said = cli("serve", option, f"{address[0]}:{address[1]}", *other)
    name = option.removeprefix("--")
    last = said.err.splitlines()[-1]
    assert said.code == 1
    assert not said.out
    assert f"{name}.listen: cannot listen on 127.0.0.1" in last
    assert str(address[1]) in last
    assert "already in use" in last


def test_a_catalogue_that_is_none_is_one_line(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database" * 100)
    assert (
        f"{broken} is not a catalogue"
        in cli("serve", "--pulsar", "127.0.0.1:0", "--catalog", broken).only_error
    )
    absent = tmp_path / "absent" / "t.sqlite"
    assert f"{absent}" in cli("serve", "--pulsar", "127.0.0.1:0", "--catalog", absent).only_error


def test_a_broken_plugin_is_one_line(cli: Cli, tmp_path: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise RuntimeError('no database here')\n")
    config = tmp_path / "f.toml"
    config.write_text('[pulsar]\nlisten = "127.0.0.1:0"\n[plugins]\nenabled = ["bad"]\n')
    said = cli("serve", "--config", config).only_error
    assert "plugin 'bad' (distribution dist-of-bad 1.2.3)" in said
    assert "no database here" in said
    config.write_text('[plugins]\nenabled = ["absent"]\n')
    assert "plugin 'absent' is enabled" in cli("serve", "--config", config).only_error


def test_a_wrong_setting_is_one_line(cli: Cli) -> None:
    assert cli("serve", "--pulsar", "nowhere").only_error.startswith("--pulsar: 'nowhere' is not HOST:PORT")
