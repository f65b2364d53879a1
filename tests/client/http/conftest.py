"""Fixtures of clients over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.client.http.scripted_answers import NAMES, always, arrow
from tests.support.scripted_http_server import ScriptedHttpServer


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lookup_client._FIRST_PAUSE", "lookup_client._LONGEST_PAUSE"):
        monkeypatch.setattr(f"broker_core.client.{module}", 0.001)
    for name in ("_FIRST_BACKOFF", "_LONGEST_BACKOFF"):
        monkeypatch.setattr(f"broker_core.client.http.http_requests.{name}", 0.001)


@pytest.fixture
async def echo() -> AsyncIterator[ScriptedHttpServer]:
    async with ScriptedHttpServer(always(lambda: arrow(NAMES))) as server:
        yield server
