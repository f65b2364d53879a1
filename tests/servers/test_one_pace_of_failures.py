"""Failures over one protocol slow an address over another one, and no other address; over sockets."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from structlog.testing import capture_logs

from broker_core.broker import Broker
from broker_core.quantities import ListenAddress
from broker_core.service import client_admission, failure_pace
from broker_core.service.client_admission import _Lane
from broker_core.settings import AuthenticationSettings, AuthorizationSettings, HttpSettings
from broker_core.wire.kafka import SASL_AUTHENTICATE, SASL_HANDSHAKE, ErrorCode
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_serving import kafka_broker, raw_client


async def over_http(broker: Broker, password: str, source: str = "127.0.0.1", user: str = "ann") -> bytes:
    """The status that a client of this address gets."""
    assert broker.http_address is not None
    reader, writer = await asyncio.open_connection(*broker.http_address, local_addr=(source, 0))
    try:
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        writer.write(
            "GET /v1/namespaces/public/default/topics HTTP/1.1\r\nHost: broker\r\n"
            f"Authorization: Basic {basic}\r\nConnection: close\r\n\r\n".encode()
        )
        return (await reader.read()).split(b" ", 2)[1]
    finally:
        writer.close()


async def over_kafka(broker: Broker, password: str) -> ErrorCode:
    """The code that a client gets."""
    assert broker.kafka_address is not None
    async with raw_client(broker.kafka_address) as client:
        await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
        said = await client.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": f"\0ann\0{password}".encode()})
        return ErrorCode(said["error_code"])


def settings(users: Path) -> dict[str, Any]:
    """The tables of a server for Kafka and HTTP with these users."""
    return {
        "authentication": AuthenticationSettings.model_validate(
            {"methods": ["basic"], "basic": {"file": users}}
        ),
        "authorization": AuthorizationSettings.model_validate(
            {"rules": [{"roles": ["ann"], "namespaces": ["*"], "actions": ["list"]}]}
        ),
        "http": HttpSettings(listen=ListenAddress("127.0.0.1", 0)),
    }


async def test_free_failures_of_an_address_are_counted_over_all_protocols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is forgiven, and who has failed too often waits for longer than the test takes.
    monkeypatch.setattr(failure_pace, "_HALF", 1e9)
    monkeypatch.setattr(failure_pace, "_STEP", 1e6)
    monkeypatch.setattr(failure_pace, "_LONGEST", 1e6)
    tables = settings(write_htpasswd(tmp_path / "users", ann="secret"))
    async with kafka_broker(tmp_path, tables=tables, sasl={"mechanisms": ["PLAIN"]}) as broker:
        registry = broker.pipeline.metrics.registry

        def failures() -> float:
            labels = {"transport": "http", "outcome": "bad_password"}
            return registry.get_sample_value("broker_core_authentications_total", labels) or 0.0

        with capture_logs():
            assert await over_http(broker, "wrong") == b"401"
            for _ in range(round(failure_pace._FREE) - 1):
                assert await over_kafka(broker, "wrong") is ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await over_http(broker, "secret") == b"200", "it has failed as often as is free"
            slowed = asyncio.create_task(over_http(broker, "wrong too"))
            await eventually(lambda: failures() == 2)
            assert await over_http(broker, "secret", "127.0.0.2") == b"200"
            assert not slowed.done()
            slowed.cancel()
            await asyncio.wait([slowed])


@pytest.mark.parametrize(
    "name", ["user-{}", "bob", "ann"], ids=["of many names", "of one name", "of its name"]
)
async def test_a_right_password_is_not_behind_200_wrong_ones_of_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The wrong ones take nine seconds, one at a time."""
    lanes: list[_Lane] = []

    class Noted(_Lane):
        def __init__(self) -> None:
            super().__init__()
            lanes.append(self)

    monkeypatch.setattr(client_admission, "_Lane", Noted)
    monkeypatch.setattr(failure_pace, "_FREE", -1.0)
    monkeypatch.setattr(failure_pace, "_LONGEST", 1e-9)
    users = tmp_path / "users"
    users.write_text("ann:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(10)).decode())
    async with kafka_broker(tmp_path, tables=settings(users), sasl={"mechanisms": ["PLAIN"]}) as broker:
        with capture_logs():
            assert await over_http(broker, "wrong") == b"401"
            wrong = [
                asyncio.create_task(over_http(broker, f"wrong {number}", user=name.format(number)))
                for number in range(200)
            ]
            await eventually(lambda: len(lanes[-1]._waiting.items) > 150)
            assert await over_http(broker, "secret") == b"200"
            assert sum(task.done() for task in wrong) < 100
            for task in wrong:
                task.cancel()
            await asyncio.wait(wrong)
