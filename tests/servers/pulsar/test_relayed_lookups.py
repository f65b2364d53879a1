"""Lookups that are relayed to brokers: what plugins describe or hide, brokers are not asked about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pyarrow.compute as pc
import pytest

from broker_core import Cause, DescribeRequest, Details, Refused
from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed, ServerError
from broker_core.memory.permit_budget import Keep
from broker_core.servers.pulsar.relayed_lookups import RelayedLookups
from broker_core.service import PluginTopics
from broker_core.wire.pulsar import HEADER_SIZE, BaseCommand, FeatureFlags, commands
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made
from tests.support.plugins import PluginOf
from tests.support.topic_plugins import BASE, by_names, gives, hides


class Cluster:
    """Brokers that note what they are asked: partitions by topic; one that they do not know they make."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.asked: list[tuple[int, str, bool]] = []
        self.feature_flags = FeatureFlags()

    async def answer(self, command: BaseCommand, _asker: Asker, _keep: Keep | None = None, /) -> bytes:
        if command.type != BaseCommand.PARTITIONED_METADATA:
            body: Any = command.lookupTopic if command.type == BaseCommand.LOOKUP else command.getSchema
            self.asked.append((command.type, body.topic, False))
            return commands.refuse(command, ServerError.ServiceNotReady, "from the brokers")
        question = command.partitionMetadata
        self.asked.append((command.type, question.topic, question.metadata_auto_creation_enabled))
        local = question.topic.rpartition("/")[2]
        if local not in self.partitions and not question.metadata_auto_creation_enabled:
            return commands.refuse(command, ServerError.TopicNotFound, "from the brokers")
        return commands.partitioned_metadata_response(question.request_id, self.partitions.get(local, 0))


@asynccontextmanager
async def lookups(
    plugins: Mapping[str, object], cluster: Cluster, tables: Any = None
) -> AsyncIterator[RelayedLookups]:
    async with made(MemoryLister(), plugins, tables=tables) as m:
        yield RelayedLookups(m.pipeline, PluginTopics(m.pipeline), cluster)


async def metadata(lookups: RelayedLookups, topic: str, *, auto_create: bool = False) -> int | ServerError:
    frame = commands.partitioned_metadata(7, BASE + topic, auto_create=auto_create)
    answer = await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker())
    body = commands.decode(answer[HEADER_SIZE:]).partitionMetadataResponse
    assert body.request_id == 7
    return body.partitions if body.response == body.Success else ServerError(body.error)


async def outcome(lookups: RelayedLookups, frame: bytes) -> ServerError:
    answer = commands.decode(
        (await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker()))[HEADER_SIZE:]
    )
    is_lookup = answer.type == BaseCommand.LOOKUP_RESPONSE
    return ServerError(answer.lookupTopicResponse.error if is_lookup else answer.getSchemaResponse.error_code)


async def test_a_gateway_believes_its_brokers_more_than_a_list_of_names() -> None:
    """Producers send by this number, and a plugin may list a part of the partitions."""
    cluster = Cluster(parted=8, other=2)
    async with lookups({"p": by_names()}, cluster) as asked:
        assert await metadata(asked, "parted") == 8
        assert await metadata(asked, "parted", auto_create=True) == 8
        assert await metadata(asked, "other") == 2
        assert await metadata(asked, "new") == ServerError.TopicNotFound
        assert not any(creates for _, _, creates in cluster.asked)
        assert await metadata(asked, "new", auto_create=True) == 0
        assert [topic for _, topic, creates in cluster.asked if creates] == [f"{BASE}new"]
    # What the brokers do not have is there by the plugin's word, and is not made.
    empty = Cluster()
    async with lookups({"p": by_names()}, empty) as asked:
        assert await metadata(asked, "parted") == 3
        assert await metadata(asked, "parted", auto_create=True) == 3
        assert not any(creates for _, _, creates in empty.asked)


async def test_a_gateway_asks_whoever_describes_topics_before_its_brokers() -> None:
    def describes(request: DescribeRequest) -> Details:
        assert request.names is not None
        known = [name for name in request.names.to_pylist() if name.endswith("parted")]
        return Details.of(known, partitions=[5] * len(known))

    cluster = Cluster(parted=8, other=2)
    async with lookups({"p": by_names(describe_topics=describes)}, cluster) as asked:
        assert await metadata(asked, "parted") == 5
        assert cluster.asked == []
        assert await metadata(asked, "other") == 2


@pytest.mark.parametrize("on_failure", ["error", "next"])
async def test_producers_do_not_wait_for_a_plugin_that_fails_to_list(on_failure: str) -> None:
    def fails() -> None:
        raise RuntimeError("no store")

    cluster = Cluster(parted=8)
    tables = {"p": {"on_failure": on_failure}}
    async with lookups({"p": PluginOf(list_topics=fails)}, cluster, tables) as asked:
        assert await metadata(asked, "parted") == 8
        assert await metadata(asked, "new") == ServerError.TopicNotFound
        assert await metadata(asked, "new", auto_create=True) == 0
        assert await outcome(asked, commands.lookup(5, f"{BASE}parted")) == ServerError.ServiceNotReady


async def test_of_a_hidden_topic_no_broker_hears() -> None:
    cluster = Cluster(secret=3, open=3)
    async with lookups({"m": hides("secret")}, cluster) as asked:
        assert await metadata(asked, "secret") == ServerError.TopicNotFound
        assert await metadata(asked, "secret", auto_create=True) == 0
        for topic in ("secret", "secret-partition-1"):
            assert await outcome(asked, commands.lookup(5, BASE + topic)) == ServerError.TopicNotFound
            assert await outcome(asked, commands.get_schema(6, BASE + topic)) == ServerError.TopicNotFound
        assert cluster.asked == []
        assert await metadata(asked, "open") == 3
        assert await outcome(asked, commands.lookup(5, f"{BASE}open")) == ServerError.ServiceNotReady
        assert await outcome(asked, commands.get_schema(6, f"{BASE}open")) == ServerError.ServiceNotReady


async def test_a_mask_that_shows_partitions_alone() -> None:
    """What the names are is known from the brokers alone, which are asked so that they make nothing."""
    cluster = Cluster(parted=3, plain=0)
    shows = PluginOf(visible=lambda topics: pc.match_substring(topics, "-partition-"))
    async with lookups({"m": shows}, cluster) as asked:
        assert await metadata(asked, "parted", auto_create=True) == 3
        assert await metadata(asked, "plain", auto_create=True) == 0
        assert await metadata(asked, "plain") == ServerError.TopicNotFound
        assert await outcome(asked, commands.lookup(5, f"{BASE}plain")) == ServerError.TopicNotFound
        assert await outcome(asked, commands.lookup(5, f"{BASE}parted")) == ServerError.ServiceNotReady
        assert not any(creates for _, _, creates in cluster.asked)
    # And one that hides all the partitions of a topic whose own name it would show.
    async with lookups({"m": hides("-partition-")}, cluster) as asked:
        assert await metadata(asked, "parted") == ServerError.TopicNotFound
        assert await metadata(asked, "plain") == 0


async def test_names_that_nobody_lists_are_left_to_the_brokers() -> None:
    cluster = Cluster()
    async with lookups({"m": hides("secret"), "p": by_names()}, cluster) as asked:
        frame = commands.partitioned_metadata(7, "topic://t/n/x", auto_create=False)
        await asked.answer(commands.decode(frame[HEADER_SIZE:]), Asker())
        assert [topic for _, topic, _ in cluster.asked] == ["topic://t/n/x"]
        assert asked.feature_flags is cluster.feature_flags


async def test_rules_and_gates_are_asked_before_brokers() -> None:
    cluster = Cluster(parted=3)
    gate = PluginOf(authorize=lambda: Refused("not for you", Cause.DENIED))
    async with lookups({"gate": gate}, cluster) as asked:
        for frame in (
            commands.partitioned_metadata(7, f"{BASE}parted"),
            commands.lookup(7, f"{BASE}parted"),
            commands.get_schema(7, f"{BASE}parted"),
        ):
            with pytest.raises(ListingFailed, match="not for you"):
                await asked.answer(commands.decode(frame[HEADER_SIZE:]), Asker())
    assert cluster.asked == []


async def test_a_describer_that_does_not_list_says_the_number_of_what_brokers_have() -> None:
    tables = {"p": {"on_failure": "next"}}
    plugins = {"p": by_names(describe_topics=lambda: None), "gives": gives(9)}
    async with lookups(plugins, Cluster(other=2), tables) as asked:
        assert await metadata(asked, "other") == 9
