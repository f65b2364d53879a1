"""Lookups of topics over HTTP: which broker serves a topic, its partitions, its schema.

They are asked as the commands of the binary protocol, whose answer is told in the words of a broker's web service.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any, Final

from aiohttp import web

from broker_core.access.access import Access
from broker_core.catalog import reading_catalog
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.errors.causes import cause_of
from broker_core.names import DOMAINS, PERSISTENT, TopicName
from broker_core.servers.http.admin.namespaces import is_known
from broker_core.servers.http.admin.paths import ADMIN, LOOKUP, declared
from broker_core.servers.http.admin.schema_json import schema_json
from broker_core.servers.http.admin.topic_path import topic_of_path
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Operation
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.wire.pulsar import HEADER_SIZE, LOOKUP_COMMANDS, BaseCommand, commands

__all__ = ["operations", "partitions_of", "properties_of"]

_VERSION: Final = struct.Struct(">q")


def operations() -> list[Operation]:
    """The operations of this file."""
    found = []
    for domain in DOMAINS:
        topic = f"{domain}/{{tenant}}/{{namespace}}/{{topic}}"
        found.append(declared("GET", f"{LOOKUP}topic/{topic}", partial(_look_up, domain=domain)))
        found.append(declared("GET", f"{ADMIN}{topic}/partitions", partial(_metadata, domain=domain)))
    schemas = f"{ADMIN}schemas/{{tenant}}/{{namespace}}/{{topic}}/schema"
    return [*found, declared("GET", schemas, _schema), declared("GET", f"{schemas}/{{version}}", _schema)]


async def _look_up(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    command = BaseCommand(type=BaseCommand.LOOKUP)
    topic = topic_of_path(request, domain, 6)
    command.lookupTopic.topic = str(topic)
    command.lookupTopic.request_id = 0
    command.lookupTopic.authoritative = request.values.get("authoritative") == "true"
    if listener := request.values.get("listenerName"):
        command.lookupTopic.advertised_listener_name = listener
    found = (await _answer(request, command, topic, "Namespace not found")).lookupTopicResponse
    plain, secured = found.brokerServiceUrl, found.brokerServiceUrlTls
    # C++ ends at once where it finds neither brokerUrlTls nor brokerUrlSsl.
    content = {"brokerUrl": plain, "nativeUrl": plain, "brokerUrlSsl": secured}
    return web.json_response(content | ({"brokerUrlTls": secured} if secured else {}))


async def _metadata(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    may_create = request.values.get("checkAllowAutoCreation") == "true"
    services = request.services
    if may_create and not await is_known(services, topic.namespace):
        may_create = False
    try:
        partitions = await partitions_of(request, topic, may_create=may_create)
    except ListingFailed as failure:
        if failure.cause is Cause.NOT_FOUND and not await is_known(services, topic.namespace):
            raise refused(404, "Namespace not found") from None
        raise
    content: dict[str, Any] = {"partitions": partitions, "deleted": False}
    if partitions and (properties := await properties_of(services, topic)):
        content["properties"] = properties
    return web.json_response(content)


async def properties_of(services: ApiServices, topic: TopicName) -> dict[str, str]:
    """The properties of a topic in the catalogue. A partition has none of its own, as at a broker."""
    if services.catalog is None:
        return {}
    with reading_catalog():
        record = await services.catalog.topic(topic)
    return {} if record is None or record.name != topic else dict(record.properties)


async def partitions_of(request: ApiRequest, topic: TopicName, *, may_create: bool = False) -> int:
    """How many partitions a topic has, 0 for one without. Raises :exc:`~broker_core.errors.ListingFailed`.

    ``may_create``: a topic that is not there is made by brokers that may, and has none here.
    """
    command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    command.partitionMetadata.topic = str(topic)
    command.partitionMetadata.request_id = 0
    command.partitionMetadata.metadata_auto_creation_enabled = may_create
    answer = await _answer(request, command, topic, f"Topic {topic} not found")
    return answer.partitionMetadataResponse.partitions


async def _schema(request: ApiRequest) -> web.StreamResponse:
    command = BaseCommand(type=BaseCommand.GET_SCHEMA)
    topic = topic_of_path(request, PERSISTENT, 5)
    command.getSchema.topic = str(topic)
    command.getSchema.request_id = 0
    version = request.http.match_info.get("version")
    if version is not None:
        if not (version.isascii() and version.isdigit() and len(version) < 19):
            raise refused(404, "Schema not found")
        command.getSchema.schema_version = _VERSION.pack(int(version))
    answer = await _answer(request, command, topic, "Schema not found")
    try:
        return web.json_response(schema_json(answer))
    except ValueError as error:
        raise ListingFailed(f"The brokers' schema cannot be told: {error}", cause=Cause.UPSTREAM) from None


async def _answer(request: ApiRequest, command: BaseCommand, topic: TopicName, missing: str) -> BaseCommand:
    """The answer to a lookup command, past rules and gates; its refusal is raised.

    ``missing`` is what is said of a topic that is not there. Raises :exc:`~broker_core.errors.ListingFailed`, and the
    error 501 where there are no brokers that could answer.
    """
    services, row = request.services, LOOKUP_COMMANDS[command.type]
    if services.pipeline.has_guards:
        access = Access(row.action, topic.namespace, topic, request.asker)
        await services.pipeline.authorize(access, request.deadline)
    if services.catalog is not None and command.type != BaseCommand.PARTITIONED_METADATA:
        raise refused(501, "This server lists topics and serves none: it has no brokers behind it")
    frame = await services.lookups.answer(command, request.asker)
    answer = commands.decode(frame[HEADER_SIZE:])
    if answer.type == BaseCommand.ERROR:
        raise _failed(answer.error.error, answer.error.message, missing)
    if row.is_refusal(answer):
        raise _failed(*row.error(answer), missing)
    return answer


def _failed(code: int, message: str, missing: str) -> ListingFailed:
    cause = cause_of(ServerError(code), Cause.UPSTREAM)
    return ListingFailed(missing if cause is Cause.NOT_FOUND else message, cause=cause)
