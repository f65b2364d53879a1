from __future__ import annotations

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.principal import Principal
from broker_core.access.sessions import ClientCredentials
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused


def test_an_end_shows_no_secret() -> None:
    accepted = Accepted(Principal("alice"), b"token", ClientCredentials("basic", b"alice:pencil"))
    assert "pencil" not in repr(accepted)
    assert "token" not in repr(accepted)


def test_a_refusal_has_a_text() -> None:
    assert str(SaslRefused(AuthenticationFailed("bad_password"))) == "bad_password"
    assert str(SaslRefused(None, "no")) == "no"
