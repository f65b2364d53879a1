"""The role of a client is the common name of its verified certificate."""

from __future__ import annotations

import pytest

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.authentication.tls import TlsVerifier
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal


async def test_the_role_is_the_common_name_whatever_the_data() -> None:
    peer = Peer("127.0.0.1:1", "pulsar", is_tls=True, common_name="alice")
    assert TlsVerifier().verify(b"", peer) == TlsVerifier().verify(b"bob", peer) == Principal("alice")


@pytest.mark.parametrize(
    ("peer", "reason"),
    [
        (Peer("127.0.0.1:1", "pulsar"), "certificate"),
        (Peer("127.0.0.1:1", "pulsar", is_tls=True), "certificate"),
        (Peer("127.0.0.1:1", "pulsar", is_tls=False, common_name="alice"), "certificate"),
        (Peer("127.0.0.1:1", "pulsar", True, "alice", lambda: False), "certificate"),
        (Peer("127.0.0.1:1", "pulsar", is_tls=True, common_name=""), "bad_role"),
        (Peer("127.0.0.1:1", "pulsar", is_tls=True, common_name="a\nb"), "bad_role"),
    ],
)
def test_other_connections_are_refused(peer: Peer, reason: str) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        TlsVerifier().verify(b"", peer)
    assert refused.value.reason == reason
