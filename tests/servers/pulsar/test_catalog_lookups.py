"""Lookups of a server without a cluster behind it: commands in, frames out."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from broker_core.access.asker import Asker
from broker_core.catalog import CatalogUnusable
from broker_core.errors import ListingFailed, ServerError
from broker_core.servers.pulsar.catalog_lookups import CatalogLookups
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import HEADER_SIZE
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.finding import Finding, finding


@pytest.fixture
async def there() -> AsyncIterator[Finding]:
    async with finding(names=["plain"]) as there:
        there.create("three", 3)
        yield there


async def answer(there: Finding, frame: bytes) -> BaseCommand:
    lookups = CatalogLookups(there.made.pipeline, there.find)
    return commands.decode(
        (await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker()))[HEADER_SIZE:]
    )


@pytest.mark.parametrize(
    ("topic", "auto_create", "expected"),
    [
        ("persistent://t/n/three", True, 3),
        ("t/n/three", False, 3),
        ("persistent://t/n/three-partition-1", False, 0),
        ("persistent://t/n/plain", False, 0),
        ("persistent://t/n/unknown", True, 0),  # as a broker that may create it answers
        ("persistent://t/n/unknown", False, ServerError.TopicNotFound),
        ("three", False, ServerError.TopicNotFound),  # of public/default
        ("topic://t/n/three", True, ServerError.InvalidTopicName),
        ("persistent://t/n", True, ServerError.InvalidTopicName),
        ("", True, ServerError.InvalidTopicName),
    ],
)
async def test_partitions(there: Finding, topic: str, auto_create: bool, expected: int | ServerError) -> None:
    found = await answer(there, commands.partitioned_metadata(7, topic, auto_create=auto_create))
    body = found.partitionMetadataResponse
    assert body.request_id == 7
    assert (body.partitions if body.response == body.Success else ServerError(body.error)) == expected


async def test_a_catalogue_that_cannot_be_read(there: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    def unusable(*_: object) -> None:
        raise CatalogUnusable("disk full")

    monkeypatch.setattr(type(there.catalog), "found", unusable)
    monkeypatch.setattr(there.made.lister, "read_now", lambda _: None)
    with pytest.raises(ListingFailed, match="Cannot read the catalogue: disk full"):
        await answer(there, commands.partitioned_metadata(7, "t/n/three"))


async def test_what_only_brokers_can_answer_is_a_clear_error(there: Finding) -> None:
    found = (await answer(there, commands.lookup(5, "persistent://t/n/x"))).lookupTopicResponse
    assert (found.request_id, found.response, found.error) == (5, found.Failed, ServerError.NotAllowedError)
    assert "upstream.service_url" in found.message
    schema = (await answer(there, commands.get_schema(6, "persistent://t/n/x"))).getSchemaResponse
    assert (schema.request_id, schema.error_code) == (6, ServerError.NotAllowedError)


def test_what_connected_promises(there: Finding) -> None:
    flags = CatalogLookups(there.made.pipeline, there.find).feature_flags
    assert [field.name for field, _ in flags.ListFields()] == [
        "supports_get_partitioned_metadata_without_auto_creation"
    ]
