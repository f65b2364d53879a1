"""Credentials of clients that are passed on: the latest ones, fresh ones, and none of a client that is gone."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import ClientCredentials, Sessions
from broker_core.client import CredentialsFailed
from broker_core.settings import KeySource, UpstreamSettings
from broker_core.upstream.pulsar.broker_credentials import Identities, own_token
from tests.support.clock import time_passes
from tests.upstream.pulsar.test_token_expiry import token


class Connection:
    """What a connection of a client is to the sessions."""


def by_client(sessions: Sessions) -> Identities:
    settings = UpstreamSettings(service_url="pulsar://a", forward="client")
    return Identities(settings, sessions, identifies=True, own=None)


async def test_expired_credentials_are_waited_for_until_the_client_renews_them() -> None:
    sessions, connection = Sessions(), Connection()
    asker = Asker("alice", connection=connection)
    old, new = (token({"sub": "alice", "exp": time.time() + seconds}) for seconds in (-5, 1000))
    sessions.put(asker, ClientCredentials("token", old))
    identities = by_client(sessions)
    identity = identities.identity_of(identities.principal_of(asker))
    waiting = asyncio.create_task(identity.credentials.current())
    await asyncio.sleep(0)
    assert not waiting.done()
    sessions.put(asker, ClientCredentials("token", new))
    assert await waiting == new


async def test_they_are_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions, connection = Sessions(), Connection()
    asker = Asker("alice", connection=connection)
    sessions.put(asker, ClientCredentials("token", token({"exp": 1})))
    identities = by_client(sessions)
    identity = identities.identity_of(identities.principal_of(asker))
    waiting = asyncio.create_task(identity.credentials.current())
    await asyncio.sleep(0)
    time_passes(monkeypatch, 60)
    with pytest.raises(CredentialsFailed, match="have expired"):
        await waiting


async def test_a_client_that_is_gone_lends_nothing() -> None:
    sessions, connection = Sessions(), Connection()
    asker = Asker("alice", connection=connection)
    sessions.put(asker, ClientCredentials("token", b"opaque"))
    identities = by_client(sessions)
    principal = identities.principal_of(asker)
    identity = identities.identity_of(principal)
    assert not identities.is_gone(principal)
    sessions.end(asker)
    assert identities.is_gone(principal)
    with pytest.raises(CredentialsFailed, match="the client is gone"):
        await identity.credentials.current()
    with pytest.raises(CredentialsFailed, match="the client is gone"):
        identities.identity_of(principal)
    with pytest.raises(CredentialsFailed, match="no credentials of this client"):
        identities.principal_of(asker)


def test_brokers_are_asked_for_a_principal_if_their_answers_depend_on_it() -> None:
    alice, nobody = Asker("alice", connection=Connection()), Asker(connection=Connection())
    sessions = Sessions()
    for asker in (alice, nobody):
        sessions.put(asker, ClientCredentials("token", b"opaque"))
    own = UpstreamSettings.model_validate({"service_url": "pulsar://a", "token": "opaque"})
    for settings, identifies, principals in (
        (own, False, [None, None]),
        (own, True, [("alice", None), None]),
        (UpstreamSettings(service_url="pulsar://a"), True, [None, None]),
        (UpstreamSettings(service_url="pulsar://a", forward="client"), True, [("alice", None), (None, None)]),
    ):
        identities = Identities(settings, sessions, identifies=identifies, own=None)
        assert [identities.principal_of(asker) for asker in (alice, nobody)] == principals


async def test_another_method_is_another_identity() -> None:
    sessions, connection = Sessions(), Connection()
    asker = Asker("alice", connection=connection)
    sessions.put(asker, ClientCredentials("token", b"opaque"))
    identities = by_client(sessions)
    principal = identities.principal_of(asker)
    identity = identities.identity_of(principal)
    sessions.put(asker, ClientCredentials("basic", b"alice:secret"))
    with pytest.raises(CredentialsFailed, match="another method") as failed:
        await identity.credentials.current()
    assert "secret" not in str(failed.value)
    assert await identities.identity_of(principal).credentials.current() == b"alice:secret"
    sessions.put(asker, ClientCredentials("tls", b""))
    with pytest.raises(CredentialsFailed, match="cannot be passed on"):
        identities.identity_of(principal)


async def test_where_the_gateway_s_own_token_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    monkeypatch.setenv("GATEWAY_TOKEN", "from-variable")
    for settings, expected in (
        ({"token": KeySource("file", str(file))}, b"from-file"),
        ({"token": "env:GATEWAY_TOKEN"}, b"from-variable"),
        ({"token": "eyJ.from.settings"}, b"eyJ.from.settings"),
        ({"token_command": ["echo", "from-command"]}, b"from-command"),
    ):
        own = own_token(UpstreamSettings.model_validate({"service_url": "pulsar://a", **settings}))
        assert own is not None
        assert await own.current() == expected
    assert own_token(UpstreamSettings(service_url="pulsar://a")) is None
    own = own_token(UpstreamSettings.model_validate({"service_url": "pulsar://a", "token": "env:NOT_THERE"}))
    assert own is not None
    with pytest.raises(CredentialsFailed, match="the variable NOT_THERE is not set"):
        await own.current()
