"""The unit of the server: compared with the server, and checked by systemd's own checker if installed."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from broker_core.quantities import parse_duration
from broker_core.settings import Settings, load_settings
from tests.support.files import file_with

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FOLDER = EXAMPLES / "serve_systemd"
UNIT = FOLDER / "broker-core.service"
SYNC = EXAMPLES / "postgres_sync" / "broker-core-postgres-sync.service"

_HARDENING = [
    "CapabilityBoundingSet",
    "DynamicUser",
    "LockPersonality",
    "NoNewPrivileges",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "UMask",
]


def service(path: Path) -> dict[str, list[str]]:
    """The section of the service; a key that is repeated has several values."""
    configparser.RawConfigParser(strict=False).read(path)  # raises for what is no INI file
    found: dict[str, list[str]] = {}
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    checker = shutil.which("systemd-analyze")
    if checker is None:
        pytest.skip("there is no systemd-analyze here; the unit is read by the other tests")
    shutil.copy(UNIT, tmp_path)
    done = subprocess.run(
        [checker, "verify", "--recursive-errors=no", tmp_path / UNIT.name],
        capture_output=True,
        text=True,
        check=False,
    )
    # What it says about units of the machine itself is not ours.
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not ours, done.stderr


def test_it_is_as_hardened_as_that_of_the_mirror() -> None:
    own, mirror = service(UNIT), service(SYNC)
    for key, values in mirror.items():
        if key in _HARDENING or key.startswith(("Private", "Protect", "Restrict")):
            assert own[key] == values, key


def test_it_runs_what_the_server_understands() -> None:
    own = service(UNIT)
    (start,) = own["ExecStart"]
    assert shlex.split(start)[:3] == ["/usr/bin/env", "broker-core", "serve"]
    assert (own["Type"], own["ExecReload"]) == (["notify"], ["/bin/kill -HUP $MAINPID"])
    assert "NotifyAccess" in own
    assert "WatchdogSec" in own
    stop = parse_duration(own["TimeoutStopSec"][0])
    pulsar = Settings().pulsar
    assert stop > 2 * (pulsar.drain_delay + pulsar.drain_timeout)
    assert int(own["LimitNOFILE"][0]) >= 4096


def test_the_settings_of_the_readme_are_those_of_the_unit(tmp_path: Path) -> None:
    readme = (FOLDER / "README.md").read_text()
    (text,) = re.findall(r"```toml\n(# /etc/broker-core/broker-core\.toml\n.*?)```", readme, re.DOTALL)
    file = file_with(tmp_path / "broker-core.toml", text)
    settings = load_settings(file, environment={}).settings
    own = service(UNIT)
    assert settings.catalog.path.parent == Path("/var/lib") / own["StateDirectory"][0]
    assert "/etc/broker-core/broker-core.toml" in own["ExecStart"][0]
    assert settings.pulsar.drain_delay + settings.pulsar.drain_timeout < parse_duration(
        own["TimeoutStopSec"][0]
    )


def test_the_settings_file_is_the_one_that_the_readme_shows() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert f"```toml\n{(FOLDER / 'broker-core.toml').read_text()}```" in readme


def test_a_user_that_stays_takes_no_protection_away() -> None:
    """``DynamicUser=yes`` implies these; without it they hold because the unit says them itself."""
    own, stays = service(UNIT), service(FOLDER / "user.conf")
    assert stays == {"DynamicUser": ["no"], "User": ["broker-core"], "Group": ["broker-core"]}
    for key in ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "RemoveIPC", "RestrictSUIDSGID"):
        assert own[key] == ["yes"]
    assert own["ProtectSystem"] == ["strict"]
    made = "useradd --system --home-dir /var/lib/broker-core --shell /usr/sbin/nologin broker-core"
    page = (EXAMPLES.parent / "docs" / "how-to" / "install.md").read_text()
    assert made in page
    assert made in (FOLDER / "user.conf").read_text()
