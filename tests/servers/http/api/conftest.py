"""A broker whose HTTP API is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.api_serving import ApiServed, api_served


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[ApiServed]:
    async with api_served(tmp_path) as served:
        yield served
