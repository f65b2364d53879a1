"""An HTTP server for a test, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.http_serving import Served


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.server.start("127.0.0.1", 0)
    yield served
    await served.server.stop()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session
