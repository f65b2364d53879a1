"""Is there a server: asked by its pages."""

from __future__ import annotations

import asyncio

from broker_core.cli.startup_checks.running_server import is_live
from broker_core.testing import serve
from tests.support.ports import free_ports


async def test_a_server_and_none() -> None:
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    assert not await asyncio.to_thread(is_live, url)
    async with serve(settings={"http": {"listen": f"127.0.0.1:{port}"}}) as server:
        assert await asyncio.to_thread(is_live, url)
        assert not await asyncio.to_thread(is_live, server.url.replace("pulsar:", "http:"))
