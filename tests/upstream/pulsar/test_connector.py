"""Attempts to connect: their outcomes, an own token that is refused, and what is no broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.client import (
    ClientError,
    Credentials,
    CredentialsFailed,
    HandshakeRefused,
    is_of_identity,
)
from broker_core.errors import ServerError
from broker_core.settings import UpstreamSettings, UpstreamTlsSettings
from broker_core.upstream.pulsar.broker_credentials import Identity
from broker_core.upstream.pulsar.connector import Connector, IsProxy
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, Script, ScriptedServer

NOBODY = Identity(Credentials())


def connector(url: str = "pulsar://a", **upstream: Any) -> Connector:
    options = UpstreamOptions(UpstreamSettings(service_url=url, **upstream), connect_timeout=5)
    return Connector(options, on_connected=lambda _server: None)


def taking(*tokens: bytes, code: ServerError = ServerError.AuthenticationError) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.connect.auth_data in tokens:
            peer.send(commands.connected("Pulsar Server4", protocol_version=21, max_message_size=5_242_880))
        else:
            peer.send(commands.error(commands.CONNECTION_REQUEST_ID, code, "no"))

    return script


async def test_a_refused_token_is_replaced_once() -> None:
    now = [b"old"]
    asked: list[bytes] = []

    async def after_refusal(refused: bytes) -> bool:
        asked.append(refused)
        now[0] = b"new"
        return True

    identity = Identity(Credentials("token", lambda: now[0]), None, after_refusal)
    made = connector()
    async with ScriptedServer(taking(b"new"), handshake=False) as server:
        client = await made.connect(("127.0.0.1", server.port), identity, is_tls=False)
        await client.close()
        assert asked == [b"old"]
    async with ScriptedServer(taking(b"other"), handshake=False) as server:
        with pytest.raises(HandshakeRefused):
            await made.connect(("127.0.0.1", server.port), identity, is_tls=False)
        assert len(server.peers) == 2
        assert asked == [b"old", b"new"]
    async with ScriptedServer(
        taking(b"other", code=ServerError.AuthorizationError), handshake=False
    ) as server:
        with pytest.raises(HandshakeRefused) as refused:
            await made.connect(("127.0.0.1", server.port), identity, is_tls=False)
        assert is_of_identity(refused.value)
        assert len(asked) == 2, "the token was taken"
    assert (made.counts["connected"], made.counts["refused"]) == (1, 2)


async def test_a_token_that_stays_the_same_is_not_sent_twice() -> None:
    async def after_refusal(_refused: bytes) -> bool:
        return False

    identity = Identity(Credentials("token", lambda: b"old"), None, after_refusal)
    async with ScriptedServer(taking(b"new"), handshake=False) as server:
        with pytest.raises(HandshakeRefused):
            await connector().connect(("127.0.0.1", server.port), identity, is_tls=False)
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    "flags",
    [None, FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)],
    ids=["without-flags", "with-flags"],
)
async def test_a_proxy_is_told_by_what_it_does_not_say(flags: FeatureFlags | None) -> None:
    async def proxy(peer: Peer, _command: BaseCommand) -> None:
        peer.send(
            commands.connected(
                "Pulsar Server4", protocol_version=21, max_message_size=None, feature_flags=flags
            )
        )

    made = connector()
    async with ScriptedServer(proxy, handshake=False) as server:
        with pytest.raises(
            IsProxy, match=r"127\.0\.0\.1:\d+ is a pulsar-proxy .*: upstream\.service_url must be"
        ) as failed:
            await made.connect(("127.0.0.1", server.port), NOBODY, is_tls=False)
        assert not is_of_identity(failed.value)
        assert made.counts["proxy"] == 1
        assert made.counts["connected"] == 0


async def test_outcomes_have_their_reasons(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    async def garbage(peer: Peer, _command: BaseCommand) -> None:
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def no_token() -> bytes:
        raise CredentialsFailed("no vault")

    made = connector("pulsar+ssl://a", tls=UpstreamTlsSettings(ca=authority.ca))
    async with (
        ScriptedServer(garbage, handshake=False) as wrong,
        ScriptedServer(tls=Authority(tmp_path, "other").issue("b").server_context()) as untrusted,
    ):
        for port, identity, is_tls, outcome in (
            (free_port(), NOBODY, False, "unreachable"),
            (wrong.port, NOBODY, False, "protocol"),
            (untrusted.port, NOBODY, True, "tls"),
            (wrong.port, Identity(Credentials("token", no_token)), False, "credentials"),
        ):
            with pytest.raises(ClientError):
                await made.connect(("127.0.0.1", port), identity, is_tls=is_tls)
            assert made.counts[outcome] == 1


async def test_files_of_tls_that_break_are_in_the_log_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    made = connector("pulsar+ssl://a", tls=UpstreamTlsSettings(ca=authority.ca))
    async with ScriptedServer(tls=authority.issue("broker").server_context()) as server:
        address = ("127.0.0.1", server.port)
        await (await made.connect(address, NOBODY, is_tls=True)).close()
        authority.ca.write_text("damaged")
        with capture_logs() as logs:
            for _ in range(3):
                await (await made.connect(address, NOBODY, is_tls=True)).close()
        (told,) = [each for each in logs if each["log_level"] == "error"]
        assert "the former files stay in use" in told["event"]
