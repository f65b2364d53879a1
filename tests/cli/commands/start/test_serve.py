from __future__ import annotations

import socket
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli.commands.start.serve import serve_options
from broker_core.settings import load_settings
from tests.cli.conftest import Cli, InstallPlugin
from tests.support.files import file_with
from tests.support.narrowed import present


def test_options_override_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_settings(
        environment={}, options=serve_options("[::1]:0", "127.0.0.1:9", Path("topics.sqlite"))
    )
    assert str(loaded.settings.pulsar.listen) == "[::1]:0"
    assert present(loaded.settings.http).listen.port == 9
    assert loaded.settings.catalog.path == tmp_path / "topics.sqlite"
    assert load_settings(environment={}, options=serve_options(None, None, None)).settings.http is None


@pytest.mark.parametrize("option", ["--pulsar", "--http"])
def test_a_port_in_use_is_one_line(cli: Cli, option: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = taken.getsockname()
        other = ["--catalog", "topics.sqlite", *(["--pulsar", "127.0.0.1:0"] if option == "--http" else [])]
        where = f"{address[0]}:{address[1]}"
        name = option.removeprefix("--")
        said = cli("serve", option, where, *other)
        assert said.only_error == f"{name}.listen: {where} is in use: another process listens there"
        assert not Path("topics.sqlite").exists()
        SqliteCatalog(Path("topics.sqlite")).close()
        last = cli("serve", option, where, *other).err.splitlines()[-1]
    assert f"{name}.listen: cannot listen on 127.0.0.1" in last
    assert "already in use" in last


def test_each_port_in_use_is_named(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        pulsar, http = (f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other))
        said = cli("serve", "--pulsar", pulsar, "--http", http, "--catalog", "topics.sqlite")
    why = "is in use: another process listens there"
    assert said.only_error == f"pulsar.listen: {pulsar} {why}; http.listen: {http} {why}"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            '[pulsar.tls]\nlisten = "127.0.0.1:0"\ncertificate = "c.pem"\nkey = "k.pem"',
            "pulsar.tls: certificate: ",
        ),
        (
            '[authentication]\nmethods = ["basic"]\nbasic.file = "users"',
            "authentication.basic.file: ",
        ),
        (
            '[authentication]\nmethods = ["token"]\ntoken.key = "file:absent"',
            "authentication.token.key: ",
        ),
        (
            '[kafka]\nlisten = "127.0.0.1:0"\n[kafka.sasl]\nmechanisms = ["OAUTHBEARER"]',
            "kafka.sasl.mechanisms: ",
        ),
        (
            '[pulsar]\nlisten = "127.0.0.1:7777"\n[http]\nlisten = "127.0.0.1:7777"',
            "http.listen: 127.0.0.1:7777 is that of pulsar.listen too",
        ),
    ],
)
def test_a_start_that_fails_leaves_no_catalogue_behind(
    cli: Cli, tmp_path: Path, settings: str, said: str
) -> None:
    config = file_with(tmp_path / "f.toml", f'{settings}\n[catalog]\npath = "topics.sqlite"\n')
    free = [] if "7777" in settings else ["--pulsar", "127.0.0.1:0"]
    assert cli("serve", "--config", config, *free).only_error.startswith(said)
    assert not list(tmp_path.glob("topics.sqlite*"))


def test_a_catalogue_that_is_none_is_one_line(cli: Cli, tmp_path: Path) -> None:
    broken = file_with(tmp_path / "broken.sqlite", b"no database" * 100)
    assert (
        f"{broken} is not a catalogue"
        in cli("serve", "--pulsar", "127.0.0.1:0", "--catalog", broken).only_error
    )
    absent = tmp_path / "absent" / "t.sqlite"
    assert f"{absent}" in cli("serve", "--pulsar", "127.0.0.1:0", "--catalog", absent).only_error


def test_a_plugin_that_fails_to_start_leaves_no_catalogue_behind(
    cli: Cli, tmp_path: Path, install_plugin: InstallPlugin
) -> None:
    for written in (False, True):
        path = tmp_path / f"{written}.sqlite"
        source = f"""
            from broker_core import hookimpl
            from broker_core.catalog import SqliteCatalog
            from broker_core.names import TopicName

            @hookimpl
            async def broker_core_startup(broker):
                if {written}:
                    with SqliteCatalog({str(path)!r}) as catalog:
                        catalog.create(TopicName.parse("persistent://a/b/x"))
                raise RuntimeError("no database here")
            """
        install_plugin(f"bad-{written}", source)
        config = file_with(
            tmp_path / "f.toml", f'[pulsar]\nlisten = "127.0.0.1:0"\n[plugins]\nenabled = ["bad-{written}"]\n'
        )
        said = cli("serve", "--config", config, "--catalog", path)
        assert (said.code, "no database here" in said.err) == (1, True)
        assert bool(list(tmp_path.glob(f"{path.name}*"))) is written


def test_a_broken_plugin_is_one_line(cli: Cli, tmp_path: Path, install_plugin: InstallPlugin) -> None:
    install_plugin("bad", "raise RuntimeError('no database here')\n")
    config = file_with(
        tmp_path / "f.toml", '[pulsar]\nlisten = "127.0.0.1:0"\n[plugins]\nenabled = ["bad"]\n'
    )
    said = cli("serve", "--config", config).only_error
    assert "plugin 'bad' (distribution dist-of-bad 1.2.3)" in said
    assert "no database here" in said
    config.write_text('[pulsar]\nlisten = "127.0.0.1:0"\n[plugins]\nenabled = ["absent"]\n')
    assert "plugin 'absent' is enabled" in cli("serve", "--config", config).only_error


def test_a_wrong_setting_is_one_line(cli: Cli) -> None:
    assert cli("serve", "--pulsar", "nowhere").only_error.startswith("--pulsar: 'nowhere' is not HOST:PORT")
