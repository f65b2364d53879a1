"""The domains of topics."""

from __future__ import annotations

from broker_core.names import DOMAINS, NON_PERSISTENT, PERSISTENT


def test_persistent_comes_first() -> None:
    assert DOMAINS == (PERSISTENT, NON_PERSISTENT) == ("persistent", "non-persistent")
