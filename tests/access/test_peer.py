"""A peer has what a transport knows before authentication, and does not change."""

from __future__ import annotations

import pytest

from broker_core.access.peer import Peer


def test_a_peer_has_no_certificate_unless_tls_has_verified_one() -> None:
    peer = Peer("127.0.0.1:5", "pulsar")
    assert (peer.remote_address, peer.transport, peer.is_tls, peer.common_name) == (
        "127.0.0.1:5",
        "pulsar",
        False,
        None,
    )
    assert Peer("h:1", "http", is_tls=True, common_name="alice").common_name == "alice"


def test_a_peer_does_not_change() -> None:
    peer = Peer("127.0.0.1:5", "pulsar")
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(peer, "common_name", "root")
    assert peer.common_name is None
