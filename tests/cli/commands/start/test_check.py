from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path

from broker_core.cli.commands.start.check import all_checks
from broker_core.cli.common_options import Invocation
from broker_core.testing import serve
from tests.cli.conftest import Cli
from tests.support.ports import free_ports


def test_all_is_found_in_one_run(cli: Cli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "s.toml").write_text(
            f'[pulsar]\nlisten = "127.0.0.1:{port}"\nspeed = 3\n[limits]\npermit_timeout = "40s"\n'
            '[plugins]\nenabled = ["postgre", "postgres"]\n'
            f'[plugins.postgres]\npassword_file = "{tmp_path}/absent"\n'
            'dsn = "postgresql://app:hunter2' + '@127.0.0.1:1/db"\n'
        )
        said = cli("check", "--config", "s.toml")
    assert said.code == 1
    lines = said.out.splitlines()
    assert all(re.fullmatch(r"(ok|warning|error) [\w.-]+: .+", line) for line in lines)
    for begin in (
        "error settings: s.toml: unknown key 'pulsar.speed'",
        f"error pulsar.listen: 127.0.0.1:{port} is in use",
        "warning limits.permit_timeout: 40 s",
        "error plugins.postgre: ",
        f"error plugins.postgres.password_file: there is no file {tmp_path}/absent",
    ):
        assert any(line.startswith(begin) for line in lines), (begin, said.out)
    assert "hunter2" not in said.out + said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml"], "nothing is made"


def test_warnings_alone_are_no_failure(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[pulsar]\nlisten = "127.0.0.1:0"\n')
    found = json.loads(cli("check", "--config", "s.toml", "--format", "json").printed)
    assert {"level": "ok", "name": "settings", "text": str(tmp_path / "s.toml")} in found
    assert {each["level"] for each in found} == {"ok", "warning"}


def test_a_file_that_does_not_parse_is_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[pulsar\n")
    said = cli("check", "--config", "s.toml")
    assert said.code == 1
    assert said.out.startswith("error settings: s.toml: not valid TOML")
    assert said.out.count("\n") == 1


def test_what_could_not_be_looked_at_is_not_said_to_be_right(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[pulsar]\nlisten = "nowhere"\n[http]\nlisten = "127.0.0.1:0"\n[limits]\npermit_timeout = "soon"\n'
        '[upstream]\nservice_url = "x"\n[plugins]\nenabled = ["spark", "spark"]\n[plugins.spark]\nstore = "x"\n'
    )
    said = cli("check", "--config", "s.toml")
    assert said.code == 1
    names = [line.split(": ", 1)[0] for line in said.out.splitlines()]
    assert names.count("error settings") == 4
    assert "ok http.listen" in names
    for unseen in ("pulsar.listen", "limits", "catalog.path", "plugins.spark"):
        assert not any(name.endswith(f" {unseen}") for name in names), said.out


def test_a_name_has_one_verdict(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[pulsar]\nlisten = "127.0.0.1:0"\n[log]\nfile = "absent/x.log"\n[catalog]\npath = "absent/c.sqlite"\n'
        '[plugins]\nenabled = ["spark"]\n[plugins.spark]\nstore = "absent/store"\ndeadline = "40s"\n'
    )
    lines = cli("check", "--config", "s.toml").out.splitlines()
    verdicts = {tuple(line.split(": ", 1)[0].split(" ")) for line in lines}
    assert len({name for _, name in verdicts}) == len(verdicts), lines
    assert ("error", "log.file") in verdicts


async def test_each_broker_has_a_line(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with serve() as server:
        (tmp_path / "s.toml").write_text(
            f'[pulsar]\nlisten = "127.0.0.1:0"\n[upstream]\nservice_url = "{server.url},127.0.0.1:{port}"\n'
        )
        found = await asyncio.to_thread(all_checks, Invocation(tmp_path / "s.toml"))
    levels = [each.level for each in found if each.name == "upstream.service_url"]
    assert levels == ["ok", "warning"]


def test_brokers_are_not_asked_without_the_credentials_that_are_wrong(cli: Cli, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    (tmp_path / "s.toml").write_text(
        f'[pulsar]\nlisten = "127.0.0.1:0"\n[upstream]\nservice_url = "pulsar://127.0.0.1:{port}"\n'
        'token_command = "fetch"\n'
    )
    said = cli("check", "--config", "s.toml").out
    assert "upstream.token_command: it is no list of words" in said
    about = [line for line in said.splitlines() if "upstream.service_url" in line]
    assert [line.partition(":")[0] for line in about] == ["warning not-checked"]


def test_what_was_not_looked_at_of_a_kafka_cluster_is_named(cli: Cli, tmp_path: Path) -> None:
    begin = '[pulsar]\nlisten = "127.0.0.1:0"\n[kafka]\nlisten = "127.0.0.1:0"\n[kafka.upstream]\n'
    wrong = {
        "bootstrap_servers": 'bootstrap_servers = "x"\n',
        "ports": 'bootstrap_servers = ["127.0.0.1:1"]\nports = "x"\n',
        "max_age": 'bootstrap_servers = ["127.0.0.1:1"]\nmax_age = "x"\n',
    }
    for setting, lines in wrong.items():
        (tmp_path / "s.toml").write_text(begin + lines)
        said = cli("check", "--config", "s.toml").out
        (unseen,) = [line for line in said.splitlines() if line.startswith("warning not-checked: ")]
        names = [
            f"kafka.upstream.{name}" for name in ("bootstrap_servers", "ports", "topics") if name != setting
        ]
        assert unseen.endswith(", ".join(names)), said
        assert not any(f" {name}: " in said for name in names)


def test_a_method_whose_key_is_wrong_is_not_said_to_be_off(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        '[pulsar]\nlisten = "127.0.0.1:0"\n[authentication]\nmethods = ["token"]\ntoken.key = "wrong"\n'
    )
    lines = cli("check", "--config", "s.toml").out.splitlines()
    wrong, unseen = (line for line in lines if "authentication" in line)
    assert wrong.startswith("error settings: ")
    assert "authentication.token.key" in wrong
    assert unseen.startswith("warning not-checked: ")
