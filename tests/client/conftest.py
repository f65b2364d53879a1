"""Fixtures of clients."""

from __future__ import annotations

import pytest


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on how long a client waits before it asks again."""
    monkeypatch.setattr("broker_core.client.lookup_client._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("broker_core.client.lookup_client._LONGEST_PAUSE", 0.001)
    monkeypatch.setattr("broker_core.client.pulsar.pulsar_service._FIRST_BACKOFF", 0.001)
    monkeypatch.setattr("broker_core.client.pulsar.pulsar_service._LONGEST_BACKOFF", 0.001)
    monkeypatch.setattr("broker_core.client.pulsar.pulsar_service._WASTING", 0.0)
