"""Users of Kafka's listener over HTTP: that their passwords work, and are shown nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.client.kafka import AdminClient, SaslAuthenticationException, Scram
from broker_core.service import live_sessions
from broker_core.wire.kafka import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tests.support.kafka_serving import raw_client
from tests.support.super_roles import Supers, supers_served

PASSWORD = "hunter2-of-erin"


@pytest.fixture
async def supers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Supers]:
    monkeypatch.setattr(live_sessions, "_PERIOD", 0.1)
    async with supers_served(tmp_path) as served:
        yield served


async def put(supers: Supers, name: str = "erin", **body: Any) -> int:
    said = await supers.ask(f"users/{name}", "PUT", json={"password": PASSWORD} | body)
    return said.status


async def logs_in(supers: Supers, password: str) -> bool:
    address = supers.served.broker.kafka_address
    assert address is not None
    async with AdminClient("{}:{}".format(*address), sasl=Scram("erin", password)) as client:
        try:
            await client.describe_cluster()
        except SaslAuthenticationException:
            return False
    return True


async def test_a_user_is_added_has_another_password_and_is_removed(supers: Supers) -> None:
    assert (await supers.ask("users")).json == {"items": [], "next": None}
    assert await put(supers) == 201
    credentials = [{"mechanism": f"SCRAM-SHA-{bits}", "iterations": 8192} for bits in (256, 512)]
    shown = {"name": "erin", "credentials": credentials}
    assert (await supers.ask("users")).json == {"items": [shown], "next": None}
    assert (await supers.ask("users/erin")).json == shown
    assert await logs_in(supers, PASSWORD)
    assert await put(supers, password="another password") == 200
    assert not await logs_in(supers, PASSWORD)
    assert await logs_in(supers, "another password")
    said = await supers.ask("users/erin?mechanism=SCRAM-SHA-256", "DELETE")
    assert said.status == 204
    assert (await supers.ask("users/erin")).json == shown | {"credentials": credentials[1:]}
    assert (await supers.ask("users/erin", "DELETE")).status == 204
    for method in ("GET", "DELETE"):
        said = await supers.ask("users/erin", method)
        assert (said.status, said.json["cause"]) == (404, "NOT_FOUND")
    assert not await logs_in(supers, "another password")


async def test_a_removed_user_is_disconnected(supers: Supers) -> None:
    broker = supers.served.broker
    assert broker.kafka_address is not None
    for name in ("erin", "frank"):
        assert await put(supers, name) == 201
    async with raw_client(broker.kafka_address) as erin, raw_client(broker.kafka_address) as frank:
        for client, name in ((erin, "erin"), (frank, "frank")):
            assert (await client.ask(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}))["error_code"] == 0
            token = f"\0{name}\0{PASSWORD}".encode()
            assert (await client.ask(SASL_AUTHENTICATE, 2, {"auth_bytes": token}))["error_code"] == 0
        assert (await supers.ask("users/erin", "DELETE")).status == 204
        assert await erin.message() == b""
        assert (await frank.ask(METADATA, 12, {"topics": []}))["cluster_id"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"password": "short-7"}, "at least 8 characters, as fewer are soon guessed; allow_short takes it"),
        ({"password": ""}, "a password has a character at least"),
        ({"password": "x" * 513}, "at most 512 bytes"),
        ({"password": "two lines\nof it"}, "one line"),
        ({"password": "with a zero\0"}, "without zero bytes"),
        ({"password": "half a \ud800 pair"}, "not valid Unicode"),
        ({"password": 12345678}, "password must be a text"),
        ({}, "password must be a text"),
        ({"password": PASSWORD, "mechanisms": ["PLAIN"]}, "mechanisms must be a list of"),
        ({"password": PASSWORD, "mechanisms": []}, "mechanisms must be a list of"),
        ({"password": PASSWORD, "iterations": 4096}, "unknown member 'iterations'"),
        ({"password": PASSWORD, "allow_short": "yes"}, "allow_short must be true or false"),
        (PASSWORD, "the body must be an object"),
    ],
)
async def test_a_wrong_body_changes_nothing_and_is_not_repeated(supers: Supers, body: Any, told: str) -> None:
    said = await supers.ask("users/erin", "PUT", json=body)
    assert said.status == 400
    assert told in said.json["detail"]
    if isinstance(body, dict) and body.get("password"):
        assert str(body["password"]) not in said.json["detail"]
    assert PASSWORD not in said.body.decode()
    assert (await supers.ask("users")).json["items"] == []


async def test_names_that_no_user_has(supers: Supers) -> None:
    for name in ("User:erin", "%20", "a%0Ab", "x" * 1025):
        assert await put(supers, name) == 400
    assert await put(supers, "tenant%2Fwith%20a%20slash") == 201
    assert (await supers.ask("users/tenant%2Fwith%20a%20slash")).status == 200


async def test_a_short_password_if_it_is_said(supers: Supers) -> None:
    assert await put(supers, password="short", allow_short=True) == 201


async def test_the_audit_has_the_user_and_nothing_has_the_password(
    supers: Supers, capfd: pytest.CaptureFixture[str]
) -> None:
    with capture_logs() as logs:
        assert await put(supers) == 201
        assert await put(supers, iterations=5) == 400
        half = f'{{"password": "{PASSWORD}"'
        assert (await supers.ask("users/erin", "PUT", data=half)).status == 415
        assert (await supers.ask("users/erin", "DELETE")).status == 204
    lines = [each for each in logs if each["event"] == "audit"]
    assert [(each["action"], each["outcome"], each["target"], each["role"]) for each in lines][:2] == [
        ("put_kafka_user", "done", "erin", "chief"),
        ("put_kafka_user", "refused", "erin", "chief"),
    ]
    assert (lines[-1]["action"], lines[-1]["outcome"]) == ("delete_kafka_user", "done")
    assert PASSWORD not in str(logs)
    assert PASSWORD not in "".join(capfd.readouterr())
