"""Fixtures of clusters behind a gateway."""

from __future__ import annotations

import pytest

from broker_core.upstream.pulsar import renewed_token
from tests.support.clock import AGES


@pytest.fixture(autouse=True)
def _tokens_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's own token is read however slow the machine is."""
    monkeypatch.setattr(renewed_token, "_READING", AGES)
