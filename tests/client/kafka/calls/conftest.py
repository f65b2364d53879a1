"""A fixture for tests of the admin client's operations: a client of a node that answers what a test tells it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from broker_core.client.kafka import AdminClient
from tests.support.scripted_kafka import ScriptedKafka


@pytest.fixture
async def node() -> AsyncIterator[ScriptedKafka]:
    async with ScriptedKafka() as node:
        yield node


@pytest.fixture
async def client(node: ScriptedKafka) -> AsyncIterator[AdminClient]:
    async with AdminClient(node.address, api_timeout=20) as client:
        yield client
