"""Lookups of topics over HTTP: the broker that serves a topic, its partitions, its schema.

The brokers are asked by the lookups of Pulsar's protocol; answers are in the words of a broker's web service.
"""

from __future__ import annotations

import json
import struct
from functools import partial
from typing import Any, Final

from aiohttp import web

from broker_core.compact_json import ascii_json
from broker_core.errors import Cause, ListingFailed
from broker_core.names import DOMAINS, PERSISTENT, TopicName
from broker_core.servers.http.admin.namespaces import is_known
from broker_core.servers.http.admin.paths import ADMIN, LOOKUP, declared
from broker_core.servers.http.admin.topic_path import topic_of_path
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.http.api.problem_details import refused
from broker_core.service import BrokerSchema, LookupQuestions, TopicAsker, client_count

__all__ = ["described", "operations"]

#: The names of the types of schemas by their numbers in the binary protocol.
_SCHEMA_TYPES: Final = (
    *("NONE", "STRING", "JSON", "PROTOBUF", "AVRO", "BOOLEAN", "INT8", "INT16", "INT32", "INT64", "FLOAT"),
    *("DOUBLE", "DATE", "TIME", "TIMESTAMP", "KEY_VALUE", "INSTANT", "LOCAL_DATE", "LOCAL_TIME"),
    *("LOCAL_DATE_TIME", "PROTOBUF_NATIVE"),
)
_SIZE: Final = struct.Struct(">I")
_WANTS: Final = frozenset({"partitions", "properties"})


def operations() -> list[HttpOperation]:
    """The operations of this file."""
    found = []
    for domain in DOMAINS:
        topic = f"{domain}/{{tenant}}/{{namespace}}/{{topic}}"
        found.append(declared("GET", f"{LOOKUP}topic/{topic}", partial(_look_up, domain=domain)))
        found.append(declared("GET", f"{ADMIN}{topic}/partitions", partial(_metadata, domain=domain)))
    schemas = f"{ADMIN}schemas/{{tenant}}/{{namespace}}/{{topic}}/schema"
    return [*found, declared("GET", schemas, _schema), declared("GET", f"{schemas}/{{version}}", _schema)]


async def _look_up(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 6)
    brokers = await _brokers(request, "lookup", topic)
    plain, secured = await brokers.broker(
        topic,
        request.asker,
        "Namespace not found",
        authoritative=request.values.get("authoritative") == "true",
        listener=request.values.get("listenerName"),
    )
    # C++ ends at once if it finds neither brokerUrlTls nor brokerUrlSsl.
    content = {"brokerUrl": plain, "nativeUrl": plain, "brokerUrlSsl": secured}
    return json_response(200, content | ({"brokerUrlTls": secured} if secured else {}))


async def _metadata(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    may_create = request.values.get("checkAllowAutoCreation") == "true"
    services = request.services
    if may_create and not await is_known(services, topic.namespace):
        may_create = False
    try:
        partitions, properties = await described(request, topic, may_create=may_create)
    except ListingFailed as failure:
        if failure.cause is Cause.NOT_FOUND and not await is_known(services, topic.namespace):
            raise refused(404, "Namespace not found") from None
        raise
    content: dict[str, Any] = {"partitions": partitions, "deleted": False}
    # Clients with the right to look topics up need their partitions: other details of a topic take the right to list.
    if partitions and properties and services.pipeline.authorization.may_list(request.asker, topic):
        content["properties"] = properties
    return json_response(200, content)


async def described(
    request: ApiRequest, topic: TopicName, *, may_create: bool = False, rules: str | None = None
) -> tuple[int, dict[str, str]]:
    """The number of partitions of a topic, 0 for one without, and its properties: none for a partition, as at a broker.

    ``may_create``: brokers may create a missing topic, which counts as one without partitions here. ``rules`` is the
    action for the rules, if it is not ``describe``. Raises :exc:`~broker_core.errors.ListingFailed`.
    """
    services, missing = request.services, f"Topic {topic} not found"
    if services.brokers is not None:
        count = await services.brokers.partitions(topic, request.asker, missing, may_create=may_create)
        return count, {}
    topic_asker = TopicAsker(asker=request.asker, rules=rules, wants=_WANTS, deadline=request.deadline)
    (found,) = await services.find.by_name(topic_asker, [topic])
    if found.failure is not None:
        raise found.failure
    if not found.exists and not may_create:
        raise ListingFailed(missing, cause=Cause.NOT_FOUND)
    properties: dict[str, str] = {}
    if found.record is not None and found.record.name == topic:
        properties = dict(found.record.properties)
    elif found.record is None and topic.partition < 0:
        properties = dict(found.details.get("properties", {}))
    return client_count(topic, found.partitions), properties


async def _schema(request: ApiRequest) -> web.StreamResponse:
    topic = topic_of_path(request, PERSISTENT, 5)
    version = request.http.match_info.get("version")
    if version is not None and not (version.isascii() and version.isdigit() and len(version) < 19):
        raise refused(404, "Schema not found")
    brokers = await _brokers(request, "schema", topic)
    number = None if version is None else int(version)
    schema = await brokers.schema(topic, request.asker, "Schema not found", number)
    try:
        return json_response(200, _schema_json(schema))
    except ValueError as error:
        raise ListingFailed(f"The brokers' schema cannot be shown: {error}", cause=Cause.UPSTREAM) from None


async def _brokers(request: ApiRequest, action: str, topic: TopicName) -> LookupQuestions:
    """The brokers, which ask rules and gates themselves. Raises the error 501 if there are none."""
    if request.services.brokers is None:
        await request.authorize(action, topic)
        raise refused(501, "This server lists topics and serves none: it has no brokers behind it")
    return request.services.brokers


def _schema_json(schema: BrokerSchema) -> dict[str, Any]:
    """A schema as a broker's web service sends it. Raises :exc:`ValueError` for one that is none."""
    if not 0 <= schema.kind < len(_SCHEMA_TYPES):
        raise ValueError(f"the type {schema.kind} of the schema is unknown")
    kind = _SCHEMA_TYPES[schema.kind]
    return {
        "version": schema.version,
        "type": kind,
        "timestamp": 0,
        "data": _key_value(schema.data) if kind == "KEY_VALUE" else schema.data.decode(),
        "properties": dict(schema.properties),
    }


def _key_value(data: bytes) -> str:
    """Two schemas, each after its size, as one JSON object; a primitive one, which is empty, is ``""``."""
    parts = []
    for _ in range(2):
        if len(data) < _SIZE.size:
            raise ValueError("the schema of keys and values is cut")
        size = min(_SIZE.unpack_from(data)[0], len(data) - _SIZE.size)
        text, data = data[_SIZE.size : _SIZE.size + size], data[_SIZE.size + size :]
        parts.append(json.loads(text) if text else "")
    return ascii_json({"key": parts[0], "value": parts[1]})
