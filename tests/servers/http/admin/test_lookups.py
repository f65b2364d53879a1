"""Lookups of clients with an ``http://`` service URL, through a gateway before a scripted broker."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.errors import ServerError
from broker_core.servers.http.admin.lookups import _schema_json
from broker_core.service import BrokerSchema
from broker_core.wire.pulsar import BaseCommand, CommandLookupTopicResponse, commands
from tests.support.api_serving import ApiServed, api_served
from tests.support.scripted_server import Peer, ScriptedServer

_LOOKUP = "/lookup/v2/topic/persistent/public/default"
_ADMIN = "/admin/v2/persistent/public/default"


async def _broker(peer: Peer, command: BaseCommand) -> None:
    """A broker: topics are by their names what a test wants of them."""
    if command.type == BaseCommand.LOOKUP:
        topic, answer = command.lookupTopic.topic, BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
        found = answer.lookupTopicResponse
        found.request_id = command.lookupTopic.request_id
        if "forbidden" in topic:
            peer.send(
                commands.refuse(command, ServerError.AuthorizationError, "Client is not authorized to Lookup")
            )
            return
        found.response = CommandLookupTopicResponse.Connect
        found.brokerServiceUrl = peer_url(peer)
        if "secured" in topic:
            found.brokerServiceUrlTls = "pulsar+ssl://broker:6651"
        if command.lookupTopic.advertised_listener_name:
            found.brokerServiceUrl = f"pulsar://{command.lookupTopic.advertised_listener_name}:6650"
        peer.send(commands.encode(answer))
    elif command.type == BaseCommand.PARTITIONED_METADATA:
        asked = command.partitionMetadata
        if "unknown" in asked.topic and not asked.metadata_auto_creation_enabled:
            peer.send(commands.refuse(command, ServerError.TopicNotFound, ""))
        else:
            peer.send(
                commands.partitioned_metadata_response(asked.request_id, 3 if "parted" in asked.topic else 0)
            )
    elif command.type == BaseCommand.GET_SCHEMA:
        schema = BaseCommand(type=BaseCommand.GET_SCHEMA_RESPONSE)
        body = schema.getSchemaResponse
        body.request_id = command.getSchema.request_id
        if "unknown" in command.getSchema.topic:
            peer.send(commands.refuse(command, ServerError.TopicNotFound, "no schema"))
            return
        body.schema.name, body.schema.type, body.schema.schema_data = "s", 1, b"text"
        body.schema_version = command.getSchema.schema_version or struct.pack(">q", 7)
        peer.send(commands.encode(schema))


def peer_url(peer: Peer) -> str:
    host, port = peer.writer.get_extra_info("sockname")[:2]
    return f"pulsar://{host}:{port}"


@asynccontextmanager
async def _gateway(folder: Path, **options: Any) -> AsyncIterator[tuple[ApiServed, ScriptedServer]]:
    async with (
        ScriptedServer(_broker) as broker,
        api_served(folder, upstream={"service_url": broker.url}, **options) as served,
    ):
        yield served, broker


async def test_the_broker_of_a_topic(tmp_path: Path) -> None:
    async with _gateway(tmp_path) as (served, broker):
        plain = broker.url
        said = await served.ask(f"{_LOOKUP}/orders")
        # The fields of a broker without TLS.
        assert said.json == {"brokerUrl": plain, "nativeUrl": plain, "brokerUrlSsl": ""}
        secured = "pulsar+ssl://broker:6651"
        said = await served.ask(f"{_LOOKUP}/secured?authoritative=true")
        assert said.json == {
            "brokerUrl": plain,
            "nativeUrl": plain,
            "brokerUrlTls": secured,
            "brokerUrlSsl": secured,
        }
        said = await served.ask(f"{_LOOKUP}/orders?listenerName=inside")
        assert said.json["brokerUrl"] == "pulsar://inside:6650"


async def test_names_with_braces(tmp_path: Path) -> None:
    async with _gateway(tmp_path) as (served, broker):
        for path in (f"{_LOOKUP}/%7Bb%7D", f"{_ADMIN}/%7Bb%7D/partitions?checkAllowAutoCreation=true"):
            assert (await served.ask(path)).status == 200
        assert broker.received[-1].partitionMetadata.topic == "persistent://public/default/{b}"


async def test_refusals(tmp_path: Path) -> None:
    async with _gateway(tmp_path) as (served, _):
        said = await served.ask(f"{_LOOKUP}/forbidden")
        assert (said.status, said.json) == (403, {"reason": "Client is not authorized to Lookup"})
        said = await served.ask(f"{_ADMIN}/unknown/partitions")
        assert (said.status, said.json) == (
            404,
            {"reason": "Topic persistent://public/default/unknown not found"},
        )


async def test_brokers_that_are_not_there(tmp_path: Path) -> None:
    async with api_served(tmp_path, upstream={"service_url": "pulsar://127.0.0.1:1"}) as served:
        said = await served.ask(f"{_LOOKUP}/orders")
        assert said.status == 502
        assert "Cannot ask the brokers" in said.json["reason"]


async def test_partitions(tmp_path: Path) -> None:
    async with _gateway(tmp_path) as (served, broker):
        assert (await served.ask(f"{_ADMIN}/parted/partitions")).json == {"partitions": 3, "deleted": False}
        assert broker.received[-1].partitionMetadata.metadata_auto_creation_enabled is False
        said = await served.ask(f"{_ADMIN}/unknown/partitions?checkAllowAutoCreation=true")
        assert said.json == {"partitions": 0, "deleted": False}
        assert broker.received[-1].partitionMetadata.metadata_auto_creation_enabled is True


async def test_schemas(tmp_path: Path) -> None:
    schemas = "/admin/v2/schemas/public/default"
    async with _gateway(tmp_path) as (served, _):
        said = await served.ask(f"{schemas}/orders/schema")
        assert (said.json["type"], said.json["data"], said.json["version"]) == ("STRING", "text", 7)
        assert (await served.ask(f"{schemas}/orders/schema/3")).json["version"] == 3
        for path in ("unknown/schema", "orders/schema/x", f"orders/schema/{2**70}"):
            said = await served.ask(f"{schemas}/{path}")
            assert (said.status, said.json) == (404, {"reason": "Schema not found"})


async def test_a_catalogue_knows_partitions_and_properties(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        said = await served.ask(f"{_ADMIN}/orders/partitions?checkAllowAutoCreation=true")
        assert said.json == {"partitions": 2, "deleted": False, "properties": {"region": "eu"}}


@pytest.mark.parametrize(
    ("actions", "sees"), [(["lookup"], False), (["list"], True), (["list", "lookup"], True)]
)
async def test_properties_take_the_right_to_list_and_partitions_do_not(
    tmp_path: Path, actions: list[str], sees: bool
) -> None:
    async with api_served(
        tmp_path,
        topics={"persistent://acme/shop/orders": (2, {"region": "eu"})},
        authentication={"anonymous_role": "anyone"},
        authorization={
            "mode": "rules",
            "rules": [{"roles": ["anyone"], "namespaces": ["*"], "actions": actions, "topics": ["orders"]}],
        },
    ) as served:
        topic = "/admin/v2/persistent/acme/shop/orders"
        said = await served.ask(f"{topic}/partitions")
        assert said.json == {"partitions": 2, "deleted": False} | (
            {"properties": {"region": "eu"}} if sees else {}
        )
        said = await served.ask(f"{topic}/properties")
        assert (said.status, said.json == {"region": "eu"}) == (200 if sees else 403, sees)


def _schema(kind: int, data: bytes) -> BrokerSchema:
    return BrokerSchema(kind, data, 3, {"made": "by hand"})


def test_a_schema() -> None:
    assert _schema_json(_schema(2, b'{"type": "record"}')) == {
        "version": 3,
        "type": "JSON",
        "timestamp": 0,
        "data": '{"type": "record"}',
        "properties": {"made": "by hand"},
    }


def test_keys_and_values_are_one_object() -> None:
    key, value = b"", b'{"type": "record"}'
    data = b"".join(struct.pack(">I", len(each)) + each for each in (key, value))
    shown = _schema_json(_schema(15, data))
    assert shown["type"] == "KEY_VALUE"
    assert json.loads(shown["data"]) == {"key": "", "value": {"type": "record"}}


@pytest.mark.parametrize(
    ("kind", "data"), [(99, b""), (2, b"\xff"), (15, b"\0"), (15, b"\0\0\0\x01x\0\0\0\0")], ids=str
)
def test_what_is_no_schema(kind: int, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        _schema_json(_schema(kind, data))
