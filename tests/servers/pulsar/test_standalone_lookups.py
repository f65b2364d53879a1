"""Lookups of a server without a cluster behind it."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.names import TopicName
from broker_core.servers.pulsar.standalone_lookups import StandaloneLookups
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import HEADER_SIZE
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand


class Topics:
    """Partitions by name of the topic; what is asked is noted."""

    def __init__(self, **partitions: int | None) -> None:
        self._partitions = partitions
        self.asked: list[str] = []
        self.error: Exception | None = None

    async def partitions(self, topic: TopicName) -> int | None:
        self.asked.append(str(topic))
        if self.error is not None:
            raise self.error
        return self._partitions.get(topic.local)


async def answer(topics: Topics, frame: bytes) -> BaseCommand:
    lookups = StandaloneLookups(topics)
    return commands.decode(
        (await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker()))[HEADER_SIZE:]
    )


@pytest.mark.parametrize(
    ("topic", "auto_create", "partitions"),
    [
        ("persistent://t/n/three", True, 3),
        ("persistent://t/n/three", False, 3),
        ("persistent://t/n/plain", False, 0),
        ("persistent://t/n/unknown", True, 0),  # as a broker that may create it answers
        ("non-persistent://t/n/three", True, 3),
    ],
)
async def test_partitions_come_from_the_catalogue(topic: str, auto_create: bool, partitions: int) -> None:
    topics = Topics(three=3, plain=0)
    found = (
        await answer(topics, commands.partitioned_metadata(7, topic, auto_create=auto_create))
    ).partitionMetadataResponse
    assert (found.request_id, found.response, found.partitions) == (7, found.Success, partitions)
    assert found.HasField("partitions")
    assert topics.asked == [topic]


async def test_more_partitions_than_clients_can_count_are_refused() -> None:
    """Java reads the number into a signed int: 2^31 partitions would be a negative number of them."""
    topics = Topics(most=2**31 - 1, more=2**31, absurd=2**40)
    found = (await answer(topics, commands.partitioned_metadata(7, "t/n/most"))).partitionMetadataResponse
    assert found.partitions == 2**31 - 1
    for name in ("more", "absurd"):
        found = (
            await answer(topics, commands.partitioned_metadata(7, f"t/n/{name}"))
        ).partitionMetadataResponse
        assert (found.response, found.error) == (found.Failed, ServerError.MetadataError)
        assert "clients count 2147483647 at most" in found.message


async def test_a_topic_that_is_not_there_is_not_found_where_it_must_not_be_made() -> None:
    found = (
        await answer(Topics(), commands.partitioned_metadata(7, "persistent://t/n/x", auto_create=False))
    ).partitionMetadataResponse
    assert (found.request_id, found.response, found.error) == (7, found.Failed, ServerError.TopicNotFound)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("t/n/x", "persistent://t/n/x"),
        ("x", "persistent://public/default/x"),
        ("persistent://t/n/x", "persistent://t/n/x"),
    ],
)
async def test_short_names(short: str, full: str) -> None:
    topics = Topics()
    await answer(topics, commands.partitioned_metadata(1, short))
    assert topics.asked == [full]


@pytest.mark.parametrize(
    "bad", ["", "topic://t/n/x", "persistent://t/n", "persistent://t/n/x/y", "t/n", "a/b/c/d", "\n://"]
)
async def test_a_bad_name(bad: str) -> None:
    topics = Topics()
    found = (await answer(topics, commands.partitioned_metadata(7, bad))).partitionMetadataResponse
    assert (found.request_id, found.response, found.error) == (7, found.Failed, ServerError.InvalidTopicName)
    assert topics.asked == []


async def test_a_catalogue_that_cannot_be_read() -> None:
    topics = Topics()
    topics.error = ListingFailed("Cannot read the catalogue: disk full", cause=Cause.CATALOG)
    found = (await answer(topics, commands.partitioned_metadata(7, "x"))).partitionMetadataResponse
    assert (found.error, found.message) == (ServerError.MetadataError, "Cannot read the catalogue: disk full")


async def test_what_only_brokers_can_answer_is_a_clear_error() -> None:
    found = (await answer(Topics(), commands.lookup(5, "persistent://t/n/x"))).lookupTopicResponse
    assert (found.request_id, found.response, found.error) == (5, found.Failed, ServerError.NotAllowedError)
    assert "upstream.service_url" in found.message
    schema = (await answer(Topics(), commands.get_schema(6, "persistent://t/n/x"))).getSchemaResponse
    assert (schema.request_id, schema.error_code) == (6, ServerError.NotAllowedError)


def test_what_connected_promises() -> None:
    flags = StandaloneLookups(Topics()).feature_flags
    assert [field.name for field, _ in flags.ListFields()] == [
        "supports_get_partitioned_metadata_without_auto_creation"
    ]
    assert {BaseCommand.LOOKUP, BaseCommand.GET_SCHEMA} < set(LOOKUP_COMMANDS)
