"""Credentials of live connections: the latest of each, and nothing of those that are gone."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import ClientCredentials, Sessions


def asker(role: str | None = "alice", original: str | None = None) -> Asker:
    return Asker(role, original)


def token(text: str) -> ClientCredentials:
    return ClientCredentials("token", text.encode())


def test_the_latest_credentials_of_a_connection_count() -> None:
    sessions, alice, other = Sessions(), asker(), asker()
    sessions.put(alice, token("first"))
    sessions.put(other, token("other"))
    assert sessions.any_of("alice", None) == token("other")
    sessions.put(alice, token("second"))
    assert sessions.any_of("alice", None) == token("second")
    assert len(sessions) == 2


def test_an_identity_is_role_and_original_principal() -> None:
    sessions, alice, proxied = Sessions(), asker(), asker("proxy", "alice")
    sessions.put(alice, token("alice"))
    sessions.put(proxied, token("proxy"))
    assert sessions.any_of("alice", None) == token("alice")
    assert sessions.any_of("proxy", "alice") == token("proxy")
    for identity in (("proxy", None), ("alice", "alice"), ("alice", ""), (None, None), ("bob", None)):
        assert sessions.any_of(*identity) is None
        assert not sessions.has_any(*identity)


def test_nothing_is_kept_of_a_connection_that_is_over() -> None:
    sessions, alice, other = Sessions(), asker(), asker()
    sessions.put(alice, token("first"))
    sessions.put(other, token("other"))
    sessions.end(other)
    sessions.end(other)
    assert sessions.any_of("alice", None) == token("first")
    assert sessions.has_any("alice", None)
    del alice  # without a word
    assert sessions.any_of("alice", None) is None
    assert not sessions.has_any("alice", None)
    assert (len(sessions), len(sessions._groups)) == (0, 0)


@pytest.mark.parametrize(
    "credentials", [token("s3cret"), ClientCredentials("token", b"s3cret", "token", "s3cret")]
)
def test_credentials_are_not_shown(credentials: ClientCredentials) -> None:
    assert "s3cret" not in repr(credentials)
    assert "s3cret" not in str(credentials)
    assert "token" in repr(credentials)
