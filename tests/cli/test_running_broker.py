"""Asking the running broker over HTTP, and the error if it does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.cli.running_broker import BrokerUnreachable, broker_url, get
from broker_core.testing import serve
from tests.cli.conftest import Cli
from tests.support.ports import free_port


async def test_a_page_is_read() -> None:
    async with serve(settings={"http": {"listen": "127.0.0.1:0"}}) as server:
        assert server.broker.http_address is not None
        host, port = server.broker.http_address
        url = broker_url(f"{host}:{port}")
        assert url == f"http://{host}:{port}"
        assert "broker_core_build_info" in await asyncio.to_thread(get, url, "/metrics")
        with pytest.raises(BrokerUnreachable, match="HTTP status 404"):
            await asyncio.to_thread(get, url, "/nothing")


def test_nobody_there_is_said() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnreachable, match=f"{url}/metrics: Connection refused"):
        get(url, "/metrics")


@pytest.mark.parametrize("given", ["ftp://host", "http://", "://x"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(BrokerUnreachable, match="is no address of a broker"):
        broker_url(given)


@pytest.mark.parametrize(
    ("listen", "asked"), [("0.0.0.0:1", "http://127.0.0.1:1"), ("[::]:1", "http://[::1]:1")]
)
def test_the_settings_say_where_it_is(listen: str, asked: str, tmp_path: Path, cli: Cli) -> None:
    config = tmp_path / "broker-core.toml"
    config.write_text(f'[http]\nlisten = "{listen}"\n')
    said = cli("spark", "status", "--config", config, "--store", tmp_path / "store", "--json")
    assert said.code == 0
    assert f"{asked}/metrics: " in said.out


def test_without_an_address_nothing_is_asked(tmp_path: Path, cli: Cli) -> None:
    config = tmp_path / "broker-core.toml"
    config.write_text("")
    said = cli("spark", "patterns", "export", "--config", config)
    assert said.code == 1
    assert "no --broker" in said.err


def test_a_free_port_is_not_asked(tmp_path: Path, cli: Cli) -> None:
    config = tmp_path / "broker-core.toml"
    config.write_text('[http]\nlisten = "127.0.0.1:0"\n')
    said = cli("spark", "patterns", "export", "--config", config)
    assert said.code == 1
    assert "http.listen is a free port (0)" in said.err
