"""LOOKUP of a pattern: answered with this server's own address, and a topic of such a name as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.broker import Broker
from broker_core.errors import ServerError
from broker_core.names import TopicName
from broker_core.servers.pulsar.listing_job import ClientPatterns
from broker_core.servers.pulsar.pattern_lookups import OwnAddress
from broker_core.settings import PulsarSettings, Settings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandLookupTopicResponse
from tests.support.raw_client import RawClient


async def looked_up(opened: Broker, text: str, *asked: str) -> CommandLookupTopicResponse:
    client = await RawClient.open(opened.pulsar_address)
    for pattern in asked:
        await client.ask(pattern=pattern)
    await client.send(commands.lookup(1, text))
    answer = await client.receive()
    client.close()
    assert answer.type == BaseCommand.LOOKUP_RESPONSE
    return answer.lookupTopicResponse


def settings(tmp_path: Path, **pulsar: Any) -> Settings:
    return Settings.model_validate(
        {"pulsar": {"listen": "127.0.0.1:0", **pulsar}, "catalog": {"path": tmp_path / "c.sqlite"}}
    )


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_pattern_is_watched_here_or_nowhere(tmp_path: Path, enabled: bool) -> None:
    asked = settings(tmp_path).model_dump(mode="json")
    asked["watchers"]["enabled"] = enabled
    async with Broker(Settings.model_validate(asked)) as opened:
        host, port = opened.pulsar_address
        told = await looked_up(opened, "persistent://public/default/orders-.*")
        assert (told.response, told.authoritative) == (CommandLookupTopicResponse.Connect, True)
        assert told.brokerServiceUrl == f"pulsar://{host}:{port}"
        assert not told.HasField("brokerServiceUrlTls")
        assert not told.proxy_through_service_url
        # Slashes that no topic has.
        told = await looked_up(opened, "persistent://public/default/(a/b|c)")
        assert told.response == CommandLookupTopicResponse.Connect


async def test_a_topic_of_such_a_name_is_a_topic(tmp_path: Path) -> None:
    async with Broker(settings(tmp_path)) as opened:
        assert opened.catalog is not None
        name = "persistent://public/default/a+b"
        opened.catalog.create(TopicName.parse(name))
        assert (await looked_up(opened, name)).response == CommandLookupTopicResponse.Failed
        assert (await looked_up(opened, name + "+")).response == CommandLookupTopicResponse.Connect


async def test_a_name_whose_partitions_are_asked_for_is_a_topic_to_be(tmp_path: Path) -> None:
    """A producer may make it: its LOOKUP is for the brokers, which there are none of here."""
    async with Broker(settings(tmp_path)) as opened:
        client = await RawClient.open(opened.pulsar_address)
        await client.send(commands.partitioned_metadata(1, "persistent://public/default/new+"))
        await client.receive()
        client.close()
        told = await looked_up(opened, "persistent://public/default/new+")
        assert told.response == CommandLookupTopicResponse.Failed
        assert (await looked_up(opened, "persistent://public/default/new+.*")).response == (
            CommandLookupTopicResponse.Connect
        )


async def test_a_pattern_is_no_topic_by_a_question_that_makes_none(tmp_path: Path) -> None:
    """Else any client of the address could send the watchers of a pattern to a broker, past masks."""
    pattern = "persistent://public/default/t-.*"
    async with Broker(settings(tmp_path)) as opened:
        client = await RawClient.open(opened.pulsar_address)
        await client.send(commands.partitioned_metadata(1, pattern, auto_create=False))
        answer = (await client.receive()).partitionMetadataResponse
        assert answer.error == ServerError.TopicNotFound
        client.close()
        assert (await looked_up(opened, pattern)).response == CommandLookupTopicResponse.Connect


async def test_a_text_without_special_characters_is_a_pattern_once_this_client_asked_it(
    tmp_path: Path,
) -> None:
    text = "persistent://public/default/a.b"
    async with Broker(settings(tmp_path)) as opened:
        assert (await looked_up(opened, text)).response == CommandLookupTopicResponse.Failed
        assert (await looked_up(opened, text, text)).response == CommandLookupTopicResponse.Connect
    asked = ClientPatterns()
    asked.note(Asker("a", remote_address="h:1"), text)
    assert (Asker("a", remote_address="h:2"), text) in asked
    assert (Asker("b", remote_address="h:1"), text) not in asked
    assert (Asker("a", remote_address="i:1"), text) not in asked


async def test_the_advertised_address_is_told(tmp_path: Path) -> None:
    async with Broker(settings(tmp_path, advertised="gateway.example:6650")) as opened:
        told = await looked_up(opened, "persistent://public/default/.*")
        assert told.brokerServiceUrl == "pulsar://gateway.example:6650"


async def test_in_place_of_a_wildcard_the_machine_is_named() -> None:
    own = OwnAddress(PulsarSettings.model_validate({"listen": "0.0.0.0:6650"}))
    own.listens(("0.0.0.0", 6651), ("::", 6652))
    plain, tls = await own.urls()
    assert tls is not None
    assert (plain.rpartition(":")[2], tls.rpartition(":")[2]) == ("6651", "6652")
    assert "0.0.0.0" not in plain
    assert "[::]" not in tls
