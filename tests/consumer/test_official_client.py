"""What the official client is made with, and the options of its `subscribe`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pulsar
import pytest

from broker_core.client import Basic, ClientTls, Credentials, CredentialsFailed, Tls, Token
from broker_core.consumer import official_client as module
from broker_core.consumer.official_client import check_subscribe_options, official_client


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """The address and the settings of each client."""
    seen: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(pulsar.asyncio, "Client", lambda url, **settings: seen.append((url, settings)))
    return seen


async def test_a_client_without_anything(made: list[tuple[str, dict[str, Any]]]) -> None:
    await official_client("pulsar://127.0.0.1:6650", operation_timeout=5, connect_timeout=0.5)
    url, settings = made[0]
    assert url == "pulsar://127.0.0.1:6650"
    assert settings["operation_timeout_seconds"] == 5
    assert settings["connection_timeout_ms"] == 500
    assert settings["authentication"] is None
    assert settings["tls_validate_hostname"]


async def test_options_go_before_all(made: list[tuple[str, dict[str, Any]]]) -> None:
    await official_client("pulsar://a", options={"io_threads": 2, "operation_timeout_seconds": 7})
    assert made[0][1]["io_threads"] == 2
    assert made[0][1]["operation_timeout_seconds"] == 7


async def test_tls_is_that_of_the_lookups(made: list[tuple[str, dict[str, Any]]], tmp_path: Path) -> None:
    tls = ClientTls(ca=tmp_path / "ca", certificate=tmp_path / "c", key=tmp_path / "k", verify_hostname=False)
    await official_client("pulsar+ssl://a", tls=tls)
    settings = made[0][1]
    assert settings["tls_trust_certs_file_path"] == str(tmp_path / "ca")
    assert settings["tls_certificate_file_path"] == str(tmp_path / "c")
    assert settings["tls_private_key_file_path"] == str(tmp_path / "k")
    assert not settings["tls_validate_hostname"]
    await official_client("pulsar+ssl://a", auth=Tls(tmp_path / "c"))
    assert isinstance(made[1][1]["authentication"], pulsar.AuthenticationTLS)


async def test_a_password_is_asked_for_once(
    made: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, str]] = []
    monkeypatch.setattr(pulsar, "AuthenticationBasic", lambda *pair: given.append(pair))
    await official_client("pulsar://a", auth=Basic("ada", lambda: "a:b"))
    assert given == [("ada", "a:b")]


async def test_tokens_are_asked_for_again_and_again(
    made: list[tuple[str, dict[str, Any]]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sources: list[Any] = []
    monkeypatch.setattr(pulsar, "AuthenticationToken", sources.append)
    tokens = ["first", "second", "third"]

    async def current() -> str:
        return tokens.pop(0)

    await official_client("pulsar://a", auth=Token(current))
    assert await asyncio.to_thread(sources[0]) == "second"
    assert await asyncio.to_thread(sources[0]) == "third"
    # Nobody gives one any more: the last one is used, and the server says what it thinks of it.
    assert await asyncio.to_thread(sources[0]) == "third"
    # asyncio tells of calls that take long, with their results.
    (told,) = [each.getMessage() for each in caplog.records if each.name == "broker_core.consumer"]
    assert "no new token" in told
    assert "third" not in told


async def test_a_missing_token_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(CredentialsFailed, match="cannot read the token"):
        await official_client("pulsar://a", auth=Token(tmp_path / "none"))


def test_a_token_source_outlives_its_loop() -> None:
    async def source() -> Any:
        return module._token_source(Credentials("token", lambda: b"new"), b"old")

    assert asyncio.run(source())() == "old"


async def test_other_methods_are_refused() -> None:
    with pytest.raises(ValueError, match="sasl"):
        await official_client("pulsar://a", auth=Credentials("sasl", lambda: b"x"))


def test_options_of_subscribe_are_checked() -> None:
    check_subscribe_options({"consumer_name": "me", "dead_letter_policy": None})
    with pytest.raises(TypeError, match="give queue_size"):
        check_subscribe_options({"receiver_queue_size": 5})
    with pytest.raises(TypeError, match="no option colour"):
        check_subscribe_options({"colour": 5})
