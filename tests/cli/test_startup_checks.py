from __future__ import annotations

import asyncio
import os
import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.cli import startup_checks as checks
from broker_core.errors import BrokerCoreError
from broker_core.names import TopicName
from broker_core.plugin_api.check_findings import Check
from broker_core.settings import PluginsSettings, Settings, UpstreamSettings
from broker_core.testing import serve
from tests.catalog.old_files import old_file
from tests.cli.conftest import InstallPlugin
from tests.support.ports import free_ports


def settings(**tables: dict[str, Any]) -> Settings:
    return Settings(**{"pulsar": {"listen": "127.0.0.1:0"}} | tables)


def levels(found: Iterator[Check] | list[Check]) -> dict[str, str]:
    """The worst level of each name."""
    worst: dict[str, str] = {}
    for check in sorted(found, key=lambda check: ("ok", "warning", "error").index(check.level)):
        worst[check.name] = check.level
    return worst


def text(found: Iterator[Check] | list[Check], name: str) -> str:
    return " | ".join(check.text for check in found if check.name == name)


def test_what_raises_is_an_error_and_what_hangs_is_left() -> None:
    def fails() -> list[Check]:
        raise BrokerCoreError("cannot open x://app:" + "hunter2" + "@h:\n  refused")

    (error,) = checks.bounded("part", fails)
    assert error == Check.error("part", "cannot open x://app:********" + "@h: refused")
    (error,) = checks.bounded("part", lambda: [Check.ok("a", "b")] * int("x"))
    assert "the check failed: ValueError" in error.text
    end = threading.Event()

    def hangs() -> list[Check]:
        end.wait(60)
        return []

    (error,) = checks.bounded("part", hangs, patience=0.05)
    end.set()
    assert error == Check.error("part", "no result within 0.05 s")


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = list(checks.listen_checks(settings(pulsar={"listen": f"127.0.0.1:{port}"})))
    assert levels(found) == {"pulsar.listen": "error"}
    assert f"127.0.0.1:{port} is in use" in found[0].text


def test_addresses() -> None:
    one, other = free_ports(2)
    found = list(
        checks.listen_checks(
            settings(pulsar={"listen": f"127.0.0.1:{one}"}, http={"listen": f"0.0.0.0:{other}"})
        )
    )
    assert levels(found) == {"pulsar.listen": "ok", "http.listen": "warning"}
    assert "no authentication" in text(found, "http.listen")
    found = list(
        checks.listen_checks(
            settings(pulsar={"listen": f"127.0.0.1:{one}"}, http={"listen": f"127.0.0.1:{one}"})
        )
    )
    assert "is that of pulsar.listen too" in text(found, "http.listen")
    found = list(checks.listen_checks(settings(pulsar={"listen": "no.such.host.invalid:1"})))
    assert levels(found) == {"pulsar.listen": "error"}


async def test_a_port_in_use_by_a_server_of_ours_is_a_warning() -> None:
    (port,) = free_ports(1)
    http = f"127.0.0.1:{port}"
    async with serve(settings={"http": {"listen": http}}) as server:
        pulsar = server.url.removeprefix("pulsar://")
        own = settings(pulsar={"listen": pulsar}, http={"listen": http})
        found = await asyncio.to_thread(lambda: list(checks.listen_checks(own)))
        assert levels(found) == {"pulsar.listen": "warning", "http.listen": "warning"}
        assert f"{pulsar} is in use by a broker-core that runs" in found[0].text
        crossed = settings(pulsar={"listen": http}, http={"listen": pulsar})
        found = await asyncio.to_thread(lambda: list(checks.listen_checks(crossed)))
        assert levels(found) == {"pulsar.listen": "error", "http.listen": "error"}


def test_the_file_of_the_log_is_looked_at_and_not_made(tmp_path: Path) -> None:
    def verdict(file: Path | None) -> str:
        return " ".join(f"{check.level} {check.text}" for check in checks.log_checks(file))

    assert verdict(None) == ""
    assert verdict(tmp_path / "x.log") == f"ok {tmp_path}/x.log is not there: the server makes it"
    assert verdict(tmp_path / "absent" / "x.log").startswith("error")
    assert f"there is no folder {tmp_path}/absent" in verdict(tmp_path / "absent" / "x.log")
    assert verdict(tmp_path) == f"error {tmp_path} is a folder, not a file"
    (tmp_path / "leads-nowhere.log").symlink_to(tmp_path / "gone" / "x.log")
    assert f"there is no folder {tmp_path}/gone" in verdict(tmp_path / "leads-nowhere.log")
    (tmp_path / "is-a-file").touch()
    assert verdict(tmp_path / "is-a-file").startswith("ok")
    assert verdict(tmp_path / "is-a-file" / "x.log").startswith("error")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["is-a-file", "leads-nowhere.log"]


def test_a_log_that_this_user_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    (file := tmp_path / "x.log").touch()
    assert list(checks.log_checks(file)) == [
        Check.error("log.file", f"{file} cannot be written by this user")
    ]
    (absent,) = checks.log_checks(tmp_path / "y.log")
    assert absent.level == "error"


def test_limits_that_do_not_fit_together() -> None:
    assert levels(checks.limit_checks(settings())) == {"limits": "ok"}
    found = list(
        checks.limit_checks(
            settings(limits={"permit_timeout": "31s", "snapshots": 0}, pulsar={"write_timeout": "2m"})
        )
    )
    assert levels(found) == dict.fromkeys(
        ("limits.permit_timeout", "limits.snapshots", "pulsar.write_timeout"), "warning"
    )
    assert "30 s that clients wait" in text(found, "limits.permit_timeout")


def test_what_the_machine_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 128))
    huge = settings(limits={"snapshots": 2**50})
    assert levels(checks.host_checks(huge)) == {"files": "warning", "memory": "warning"}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 100_000))
    assert levels(checks.host_checks(settings())) == {"files": "ok", "memory": "ok"}
    found = list(checks.host_checks(settings(limits={"connections": 100_000})))
    assert levels(found) == {"files": "ok", "memory": "ok", "limits.connections": "warning"}
    assert "more than the limit of open files has room for" in text(found, "limits.connections")
    assert "limits.connections" not in levels(checks.host_checks(settings(limits={"connections": 90_000})))


def catalog(path: Path, *keys: str) -> Settings:
    return settings(catalog={"path": path, "property_keys": keys})


def test_a_catalogue_is_looked_at_and_nothing_is_made(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    assert levels(checks.catalog_checks(catalog(path))) == {"catalog.path": "warning"}
    assert levels(checks.catalog_checks(catalog(tmp_path / "absent" / "c.sqlite"))) == {
        "catalog.path": "error"
    }
    assert list(tmp_path.iterdir()) == []
    with SqliteCatalog(path) as opened:
        opened.create(TopicName.parse("persistent://a/b/x"), properties={"region": "eu"})
        # While somebody has it open, and after.
        assert text(list(checks.catalog_checks(catalog(path))), "catalog.path") == f"{path}: 1 topics"
    before = (sorted(tmp_path.iterdir()), path.read_bytes(), path.stat().st_mtime_ns)
    found = list(checks.catalog_checks(catalog(path, "region", "team")))
    assert text(found, "catalog.path") == f"{path}: 1 topics"
    assert levels(found) == {"catalog.path": "ok", "catalog.property_keys": "warning"}
    assert "'team'" in text(found, "catalog.property_keys")
    assert (sorted(tmp_path.iterdir()), path.read_bytes(), path.stat().st_mtime_ns) == before


def test_where_no_topic_has_a_property_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as opened:
        assert levels(checks.catalog_checks(catalog(path, "team"))) == {"catalog.path": "ok"}, "nothing yet"
        opened.create(TopicName.parse("persistent://a/b/x"))
    found = list(checks.catalog_checks(catalog(path, "team")))
    assert text(found, "catalog.property_keys").endswith("gets nothing; no topic has any property")


def test_a_catalogue_that_can_only_be_read_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as opened:
        opened.create(TopicName.parse("persistent://a/b/x"))
    access = os.access
    monkeypatch.setattr(  # root may do anything
        os, "access", lambda place, mode: access(place, mode) and (Path(place) != path or not mode & os.W_OK)
    )
    (found,) = checks.catalog_checks(catalog(path))
    assert found.level == "warning"
    assert "1 topics, which are served" in found.text


def test_a_catalogue_of_a_former_release_is_told_of_ahead(tmp_path: Path) -> None:
    path = old_file("format-1-unstamped", tmp_path / "c.sqlite")
    found = list(checks.catalog_checks(catalog(path)))
    assert levels(found) == {"catalog.path": "ok", "catalog.format": "warning"}
    assert "from format 1 to 2 at its start, and keeps a copy of it" in text(found, "catalog.format")
    with path.open("rb+") as file:
        file.truncate(2**43)
    found = list(checks.catalog_checks(catalog(path)))
    assert levels(found) == {"catalog.path": "ok", "catalog.format": "error"}


@pytest.mark.parametrize("content", [b"no database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_catalogue(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(content)
    assert levels(checks.catalog_checks(catalog(path))) == {"catalog.path": "error"}
    assert path.read_bytes() == content


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may do anything
    (tmp_path / "c.sqlite").touch()
    found = list(checks.catalog_checks(catalog(tmp_path / "c.sqlite")))
    assert levels(found) == {"catalog.path": "error"}


async def test_brokers_are_asked(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with serve() as server:
        url = f"{server.url},127.0.0.1:{port}"
        found = await _in_a_thread(url)
        assert [check.level for check in found] == ["ok", "warning"]
        assert f"127.0.0.1:{port}" in found[1].text
    assert [check.level for check in await _in_a_thread(f"pulsar://127.0.0.1:{port}")] == ["error"]


async def _in_a_thread(url: str) -> list[Check]:
    return await asyncio.to_thread(checks.upstream_checks, UpstreamSettings(service_url=url))


HOOK = """
from broker_core import Check, hookimpl
from pydantic import BaseModel

class Own(BaseModel):
    store: str = "here"

@hookimpl
def broker_core_settings():
    return Own

@hookimpl
{}
"""


def plugins(name: str, **table: object) -> PluginsSettings:
    return PluginsSettings.model_validate({"enabled": [name]} | ({name: table} if table else {}))


@pytest.mark.parametrize("define", ["def", "async def"])
def test_a_plugin_says_what_it_sees(install_plugin: InstallPlugin, define: str) -> None:
    install_plugin(
        "sees",
        HOOK.format(
            f"{define} broker_core_check(settings):\n    return [Check.warning('store', settings.store)]"
        ),
    )
    found = list(checks.plugin_checks(plugins("sees", store="there")))
    assert levels(found) == {"plugins.sees": "ok", "plugins.sees.store": "warning"}
    assert text(found, "plugins.sees.store") == "there"


def test_without_the_hook_its_problems_are_errors(install_plugin: InstallPlugin) -> None:
    install_plugin("unwell", HOOK.format("def broker_core_problems(settings):\n    return ['it is ill']"))
    found = list(checks.plugin_checks(plugins("unwell", deadline="40s")))
    assert levels(found) == {"plugins.unwell": "error", "plugins.unwell.deadline": "warning"}
    assert "it is ill" in text(found, "plugins.unwell")


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("raises", "raise OSError('no disk')", "no disk"),
        ("speaks", "return ['x']", "gave a str, not a Check"),
    ],
)
def test_a_plugin_that_errs(install_plugin: InstallPlugin, name: str, body: str, said: str) -> None:
    install_plugin(name, HOOK.format(f"def broker_core_check(settings):\n    {body}"))
    found = list(checks.plugin_checks(plugins(name)))
    assert levels(found) == {f"plugins.{name}": "error"}
    assert said in text(found, f"plugins.{name}")


def test_plugins_that_are_not_there(install_plugin: InstallPlugin) -> None:
    install_plugin("mine", "")
    found = list(
        checks.plugin_checks(
            PluginsSettings.model_validate({"enabled": ["postgre"], "mine": {"x": 1}, "absent": {"x": 1}})
        )
    )
    assert levels(found) == {"plugins.postgre": "error", "plugins.mine": "warning", "plugins.absent": "error"}
    assert "did you mean 'postgres'?" in text(found, "plugins.postgre")
