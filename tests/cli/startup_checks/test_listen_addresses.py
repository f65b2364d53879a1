from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.authentication import Authenticator
from broker_core.broker import Broker
from broker_core.cli.startup_checks.listen_addresses import listen_checks
from broker_core.testing import serve
from tests.cli.startup_checks.findings import levels, settings, text
from tests.support.ports import free_ports
from tests.support.tokens import SECRET, data_url


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


def test_clients_of_kafka_authenticate_by_sasl_alone() -> None:
    one, other, third = free_ports(3)
    told = {"advertised": "gateway.example.com:9093"}
    tls = {"listen": f"0.0.0.0:{other}", "certificate": "a.pem", "key": "a.key", **told}
    kafka: dict[str, Any] = {"listen": f"0.0.0.0:{one}", "tls": tls, **told}
    kafka["sasl"] = {"mechanisms": ["SCRAM-SHA-512"]}
    http = {"listen": f"0.0.0.0:{third}"}
    found = list(listen_checks(settings(kafka=kafka, http=http)))
    assert levels(found)["kafka.tls.listen"] == "ok"
    assert "whoever reads the network has the tokens and passwords" in text(found, "kafka.listen")
    assert "no authentication" in text(found, "http.listen")
    found = list(listen_checks(settings(kafka=kafka | {"sasl": {}}, http=http)))
    assert "no authentication" in text(found, "kafka.tls.listen")


async def test_a_port_in_use_by_a_server_of_ours_is_a_warning() -> None:
    (port,) = free_ports(1)
    http = f"127.0.0.1:{port}"
    async with serve(settings={"http": {"listen": http}}) as server:
        pulsar = server.url.removeprefix("pulsar://")
        own = settings(pulsar={"listen": pulsar}, http={"listen": http})
        found = await asyncio.to_thread(lambda: list(listen_checks(own)))
        assert levels(found) == {"pulsar.listen": "warning", "http.listen": "warning"}
        assert f"{pulsar} is in use by a broker-core that runs" in found[0].text
        found = await asyncio.to_thread(lambda: list(listen_checks(own, by_server=True)))
        assert levels(found) == {"pulsar.listen": "ok", "http.listen": "ok"}
        assert found[0].text == f"{pulsar} is listened on by this server"
        crossed = settings(pulsar={"listen": http}, http={"listen": pulsar})
        found = await asyncio.to_thread(lambda: list(listen_checks(crossed)))
        assert levels(found) == {"pulsar.listen": "error", "http.listen": "error"}


@pytest.mark.parametrize(
    "tables",
    [{"http": {}}, {"http": {"protect": True}}, {}],
    ids=["pages", "protected", "alone"],
)
async def test_a_server_with_authentication_counts_no_failed_client(
    tables: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulsar, http = (f"127.0.0.1:{port}" for port in free_ports(2))
    tables = {
        "pulsar": {"listen": pulsar},
        "catalog": {"path": tmp_path / "topics.sqlite"},
        "authentication": {
            "methods": ["token"],
            "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
        },
        "authorization": {"super_roles": ["root"]},
        **{name: {"listen": http, **table} for name, table in tables.items()},
    }
    own = settings(**tables)
    asked: list[object] = []
    monkeypatch.setattr(Authenticator, "authenticate", lambda *given: asked.append(given))
    with capture_logs() as logs:
        async with Broker(own):
            found = await asyncio.to_thread(lambda: list(listen_checks(own)))
    assert set(levels(found).values()) == {"warning"}
    assert "is in use" in found[0].text
    assert not asked
    assert not [each for each in logs if each["log_level"] in ("warning", "error")]


def test_another_process_beside_open_pages_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (port,) = free_ports(1)
        found = list(
            listen_checks(
                settings(
                    pulsar={"listen": f"127.0.0.1:{taken.getsockname()[1]}"},
                    http={"listen": f"127.0.0.1:{port}"},
                    authentication={
                        "methods": ["token"],
                        "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
                    },
                )
            )
        )
    assert levels(found)["pulsar.listen"] == "error"


@pytest.mark.parametrize(
    ("host", "protect", "anonymous", "is_open"),
    [
        ("0.0.0.0", False, "anonymous", True),
        ("0.0.0.0", True, "anonymous", False),
        ("127.0.0.1", False, "anonymous", False),
        ("0.0.0.0", False, "", False),  # without authentication everything is
    ],
)
def test_pages_that_are_open_beside_authentication(
    host: str, protect: bool, anonymous: str, is_open: bool
) -> None:
    (port,) = free_ports(1)
    http = {"listen": f"{host}:{port}", "protect": protect}
    found = listen_checks(settings(http=http, authentication={"anonymous_role": anonymous}))
    assert ("open to all: http.protect" in text(found, "http.listen")) == is_open
