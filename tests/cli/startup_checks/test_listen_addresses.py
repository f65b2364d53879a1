from __future__ import annotations

import asyncio
import socket

from broker_core.cli.startup_checks.listen_addresses import listen_checks
from broker_core.testing import serve
from tests.cli.startup_checks.findings import levels, settings, text
from tests.support.ports import free_ports


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = list(listen_checks(settings(pulsar={"listen": f"127.0.0.1:{port}"})))
    assert levels(found) == {"pulsar.listen": "error"}
    assert f"127.0.0.1:{port} is in use" in found[0].text


def test_addresses() -> None:
    one, other = free_ports(2)
    found = list(
        listen_checks(settings(pulsar={"listen": f"127.0.0.1:{one}"}, http={"listen": f"0.0.0.0:{other}"}))
    )
    assert levels(found) == {"pulsar.listen": "ok", "http.listen": "warning"}
    assert "no authentication" in text(found, "http.listen")
    found = list(
        listen_checks(settings(pulsar={"listen": f"127.0.0.1:{one}"}, http={"listen": f"127.0.0.1:{one}"}))
    )
    assert "is that of pulsar.listen too" in text(found, "http.listen")
    found = list(listen_checks(settings(pulsar={"listen": "no.such.host.invalid:1"})))
    assert levels(found) == {"pulsar.listen": "error"}


async def test_a_port_in_use_by_a_server_of_ours_is_a_warning() -> None:
    (port,) = free_ports(1)
    http = f"127.0.0.1:{port}"
    async with serve(settings={"http": {"listen": http}}) as server:
        pulsar = server.url.removeprefix("pulsar://")
        own = settings(pulsar={"listen": pulsar}, http={"listen": http})
        found = await asyncio.to_thread(lambda: list(listen_checks(own)))
        assert levels(found) == {"pulsar.listen": "warning", "http.listen": "warning"}
        assert f"{pulsar} is in use by a broker-core that runs" in found[0].text
        crossed = settings(pulsar={"listen": http}, http={"listen": pulsar})
        found = await asyncio.to_thread(lambda: list(listen_checks(crossed)))
        assert levels(found) == {"pulsar.listen": "error", "http.listen": "error"}
