from __future__ import annotations

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.servers.kafka.sasl.mechanisms import Accepted, SaslRefused
from broker_core.service import Admitted, LoginAttempt


def test_an_end_shows_no_secret() -> None:
    attempt = LoginAttempt(Peer("h:1", "kafka"), "", "basic", b"alice:token", stored=frozenset({b"token"}))
    assert "token" not in repr(Accepted(Admitted(Principal("alice"), "alice", None, attempt), b"token"))


def test_a_refusal_has_a_text() -> None:
    assert str(SaslRefused(AuthenticationFailed("bad_password"))) == "bad_password"
    assert str(SaslRefused(None, "no")) == "no"
