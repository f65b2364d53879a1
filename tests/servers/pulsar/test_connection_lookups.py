"""Lookups on a connection, with the same bounds as listings."""

from __future__ import annotations

import asyncio

from broker_core.access.asker import Asker
from broker_core.errors import ServerError
from broker_core.memory.permit_budget import Keep
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.connection_questions import (
    lister,
)
from tests.support.eventually import eventually
from tests.support.pulsar_serving import serving


class Lookups:
    """Answers as a test says."""

    feature_flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)

    def __init__(self) -> None:
        self.frame = b""
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def answer(self, command: BaseCommand, asker: Asker, _keep: Keep | None = None, /) -> bytes:
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.frame


async def test_a_lookup_is_answered_and_a_large_answer_takes_permits() -> None:
    lookups = Lookups()
    schema = BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE)
    schema.getSchemaResponse.request_id, schema.getSchemaResponse.error_message = 3, "s" * 3_000_000
    lookups.frame = commands.encode(schema)
    async with (
        serving(lister(), lookups=lookups, limits=LimitsSettings(permit_timeout=0.02)) as s,
        await s.client() as client,
    ):
        await client.send(commands.get_schema(3, "t"))
        assert await client.receive() == schema
        held = await s.permits.direct.acquire(s.permits.direct.maximum)
        await client.send(commands.get_schema(4, "t"))
        answer = (await client.receive()).getSchemaResponse
        assert (answer.request_id, answer.error_code) == (4, ServerError.MetadataError)
        held.release()
        await client.ping()


async def test_a_lookup_whose_client_goes_is_given_up() -> None:
    lookups = Lookups()
    lookups.gate.clear()
    async with serving(lister(), lookups=lookups) as s:
        client = await s.client()
        await client.send(commands.lookup(4, "t"))
        await eventually(lambda: s.server.load.slots.taken == 1)
        client.close()
        await s.nothing_held()
