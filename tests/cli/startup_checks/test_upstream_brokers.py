from __future__ import annotations

import asyncio
from pathlib import Path

from broker_core.cli.startup_checks.upstream_brokers import upstream_checks
from broker_core.plugin_api.check_findings import Check
from broker_core.settings import UpstreamSettings
from broker_core.testing import serve
from tests.support.ports import free_ports


async def test_brokers_are_asked(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with serve() as server:
        url = f"{server.url},127.0.0.1:{port}"
        found = await _in_a_thread(url)
        assert [check.level for check in found] == ["ok", "warning"]
        assert f"127.0.0.1:{port}" in found[1].text
    assert [check.level for check in await _in_a_thread(f"pulsar://127.0.0.1:{port}")] == ["error"]


async def _in_a_thread(url: str) -> list[Check]:
    return await asyncio.to_thread(upstream_checks, UpstreamSettings(service_url=url))
