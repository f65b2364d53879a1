from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from broker_core.settings import MASK
from tests.cli.conftest import Cli
from tests.support.files import file_with

FILE = """
[pulsar]
listen = "127.0.0.1:0"
keep_alive = 90
[plugins]
enabled = ["a"]
[plugins.a]
deadline = "2s"
password = "hunter2"
hosts = ["x", "y"]
pool = {min = 1, "odd key" = true}
[plugins."b.c"]
[[quotas]]
name = "batch"
requests = 10
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return file_with(tmp_path / "broker-core.toml", FILE)


def test_it_prints_toml_with_the_origin_of_each_setting(
    cli: Cli, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKER_CORE_LIMITS__SNAPSHOTS", "1gb")
    said = cli("config", "--config", config)
    assert said.code == 0
    assert not said.err
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert lines[0] == f"# settings file: {config}"
    assert f'listen = "127.0.0.1:0" # from file {config}' in lines
    assert f'keep_alive = "90s" # from file {config}' in lines
    assert 'drain_timeout = "10s" # from default' in lines
    assert 'snapshots = "1GB" # from env BROKER_CORE_LIMITS__SNAPSHOTS' in lines
    assert "# no table [http]: HTTP is off" in lines
    parsed = tomllib.loads(said.out)
    assert parsed["plugins"]["a"] == {
        "deadline": "2s",
        "password": MASK,
        "hosts": ["x", "y"],
        "pool": {"min": 1, "odd key": True},
    }
    assert parsed["plugins"]["b.c"] == {}
    assert parsed["limits"]["property_bytes"] == "16KB"
    assert (parsed["quotas"][0]["name"], parsed["quotas"][0]["requests"]) == ("batch", 10)


def test_what_it_prints_is_a_settings_file_again(cli: Cli, config: Path, tmp_path: Path) -> None:
    first = cli("config", "--config", config).out
    again = file_with(tmp_path / "again.toml", first)
    assert tomllib.loads(cli("config", "--config", again).out) == tomllib.loads(first)


def test_json_has_the_same(cli: Cli, config: Path) -> None:
    said = json.loads(cli("config", "--config", config, "--format", "json").out)
    assert said["file"] == str(config)
    assert said["settings"]["plugins"]["a"]["password"] == MASK
    assert said["from"]["plugins.a.password"] == {"origin": "file", "source": str(config)}
    assert said["from"]["log.level"] == {"origin": "default", "source": ""}
    assert "hunter2" not in json.dumps(said)


def test_without_a_file_it_says_so(cli: Cli) -> None:
    assert cli("config").out.startswith("# no settings file\n")


def test_what_is_wrong_is_one_line(cli: Cli, tmp_path: Path) -> None:
    file = file_with(tmp_path / "f.toml", "[pulsar]\nlisten = 'nowhere'\n")
    assert cli("config", "--config", file).only_error.startswith(
        f"{file}: pulsar.listen: 'nowhere' is not HOST:PORT"
    )


def test_a_setting_of_no_table_is_in_front_of_all_tables(cli: Cli, tmp_path: Path) -> None:
    file = file_with(tmp_path / "broker-core.toml", '[[quotas]]\nname = "q"\nroles = ["a"]\nrequests = 5\n')
    said = cli("config", "--config", file)
    assert (said.code, said.err) == (0, "")
    (quota,) = tomllib.loads(said.out)["quotas"]
    assert quota["roles"] == ["a"]
    assert "bytes" not in quota
    assert json.loads(cli("config", "--config", file, "--format", "json").out)["settings"]["quotas"]
