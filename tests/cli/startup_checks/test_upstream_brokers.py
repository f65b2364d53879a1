from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from broker_core.cli.startup_checks.upstream_brokers import upstream_checks
from broker_core.errors import ServerError
from broker_core.plugin_api.check_findings import Check
from broker_core.settings import Settings, UpstreamSettings, UpstreamTlsSettings
from broker_core.testing import serve
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.certificates import Authority
from tests.support.fake_cluster import FakeCluster
from tests.support.ports import free_ports
from tests.support.scripted_server import Peer, ScriptedServer


async def test_brokers_are_asked(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with serve() as server:
        url = f"{server.url},127.0.0.1:{port}"
        found = await _in_a_thread(url)
        assert [check.level for check in found] == ["ok", "warning"]
        assert len(await _in_a_thread(url, admin_url="http://127.0.0.1:8080")) == 2
        assert f"127.0.0.1:{port}" in found[1].text
    assert [check.level for check in await _in_a_thread(f"pulsar://127.0.0.1:{port}")] == ["error"]


async def test_a_folder_that_cannot_be_used_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with FakeCluster() as cluster:
        for name, levels in (
            ("file", ["warning"]),
            ("none", ["ok"]),
            ("file/none", ["warning"]),
            ("a/b", ["warning"]),
        ):
            snapshots = {"folder": str(tmp_path / name)}
            found = await _in_a_thread(cluster.url, snapshots=snapshots)
            said = [check for check in found if check.name == "upstream.snapshots.folder"]
            assert [check.level for check in said] == levels


async def test_what_is_wrong_with_the_gateway_is_said(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def refuse(peer: Peer, command: BaseCommand) -> None:
        is_good = command.connect.auth_data == b"good"
        peer.send(
            commands.connected("Pulsar Server4", protocol_version=21, max_message_size=None)
            if is_good
            else commands.error(
                commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate"
            )
        )

    async with ScriptedServer(refuse, handshake=False) as server:
        literal, refused = await _in_a_thread(server.url, token="bad")
        assert (literal.level, refused.level) == ("warning", "error")
        assert literal.text.startswith("it is the token itself")
        path, _ = await _in_a_thread(server.url, token="/run/gateway.jwt")
        assert "looks like a path: write file:PATH" in path.text
        assert "refuses the credentials of the gateway (Failed to authenticate)" in refused.text
        _, proxy = await _in_a_thread(server.url, token="good")
        assert "is a pulsar-proxy" in proxy.text
        (missing,) = await _in_a_thread(server.url, token=f"file:{tmp_path / 'absent'}")
        assert "absent: No such file" in missing.text
    async with ScriptedServer(tls=authority.issue("broker").server_context()) as secured:
        (wrong,) = await _in_a_thread(secured.url)
        assert "is not accepted: unable to get local issuer certificate" in wrong.text
        (right,) = await _in_a_thread(secured.url, tls=UpstreamTlsSettings(ca=authority.ca))
        assert right.level == "ok"


async def _in_a_thread(url: str, **upstream: Any) -> list[Check]:
    settings = Settings(upstream=UpstreamSettings(service_url=url, **upstream))
    found = await asyncio.to_thread(lambda: list(upstream_checks(settings)))
    said = [check for check in found if check.name == "upstream.admin_url"]
    assert [check.level for check in said] == ([] if upstream.get("admin_url") else ["ok"])
    return [check for check in found if check not in said]
