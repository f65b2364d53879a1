"""One topic as `pulsar-admin` makes, changes and deletes it: in the embedded catalogue.

docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from aiohttp import web

from broker_core.access.audit_log import Action
from broker_core.catalog import (
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    TopicWrite,
)
from broker_core.names import DOMAINS, TopicName
from broker_core.names.partition_suffix import PARTITION_SUFFIX
from broker_core.servers.http.admin.bodies import PARTITIONS, PROPERTIES, partitions_in, properties_in
from broker_core.servers.http.admin.lookups import partitions_of, properties_of
from broker_core.servers.http.admin.namespaces import catalog_of
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.admin.topic_path import topic_of_path
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Body, Operation
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.topic_writes import TopicWrites

__all__ = ["operations"]

#: A name that ends with a number of a partition as no partition is named: with zeros before it.
_ODD_PARTITION: Final = re.compile(f"{PARTITION_SUFFIX}0[0-9]+$", re.ASCII)

#: Changes a topic of a catalogue, or raises what a client is told.
_Write: TypeAlias = Callable[[ApiRequest, TopicWrites, TopicName], Awaitable[TopicWrite]]


def operations() -> list[Operation]:
    """The operations of this file."""
    found: list[Operation] = []
    for domain in DOMAINS:
        topic = f"{ADMIN}{domain}/{{tenant}}/{{namespace}}/{{topic}}"

        def write(
            method: str, path: str, action: Action, change: _Write, body: Body | None = None, of: str = domain
        ) -> None:
            handler = partial(_written, domain=of, change=change)
            found.append(declared(method, path, handler, body=body, changes=action))

        write("PUT", topic, "create_topic", _create, PROPERTIES)
        write("DELETE", topic, "delete_topic", _delete)
        write("PUT", f"{topic}/partitions", "create_topic", _create_partitioned, PARTITIONS)
        write("POST", f"{topic}/partitions", "add_partitions", _grow, PARTITIONS)
        write("DELETE", f"{topic}/partitions", "delete_topic", _delete_partitioned)
        write("PUT", f"{topic}/properties", "change_topic", _set_properties, PROPERTIES)
        write("DELETE", f"{topic}/properties", "change_topic", _remove_property)
        found.append(declared("GET", f"{topic}/properties", partial(_properties, domain=domain)))
    return found


async def _properties(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    catalog_of(request.services)
    await partitions_of(request, topic)  # asks for the right, and whether the client may see it
    return web.json_response(await properties_of(request.services, topic))


async def _written(request: ApiRequest, *, domain: str, change: _Write) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    request.change.target = str(topic)
    catalog_of(request.services)
    writes = request.services.writes
    assert writes is not None, "where there is a catalogue, it can be written"
    await writes.authorize(request.asker, topic.namespace, topic, request.deadline)  # before the body is read
    write = await change(request, writes, topic)
    request.change.made(write.version, changed=write.changed)
    return web.Response(status=204)


async def _create(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    properties = await properties_in(request)
    if _ODD_PARTITION.search(topic.local):  # a broker takes it for a partition, and finds none of that number
        raise _no_partition(topic, 0)
    try:
        return await writes.create(request.asker, topic, properties, deadline=request.deadline)
    except TopicExists:
        raise _exists() from None
    except PartitionRefused as error:
        raise _no_partition(topic, error.partitions) from None


async def _create_partitioned(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    partitions, properties = await partitions_in(request)
    if partitions <= 0:
        raise refused(406, "Number of partitions should be more than 0")
    _check_not_partition(topic)
    try:
        return await writes.create_partitioned(
            request.asker, topic, partitions, properties, deadline=request.deadline
        )
    except TopicExists:
        raise _exists() from None
    except TopicInvalid as error:
        raise refused(406, str(error)) from None


async def _grow(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    partitions, _ = await partitions_in(request)
    _check_not_partition(topic)
    try:
        return await writes.grow(request.asker, topic, max(partitions, 0), deadline=request.deadline)
    except TopicInvalid as error:
        raise refused(406, str(error)) from None
    except TopicMissing:
        raise _not_partitioned(topic) from None
    except PartitionCountRefused as error:
        if not error.partitions:
            raise _not_partitioned(topic) from None
        raise refused(
            422,
            f"Desired partitions {partitions} can't be less than the current partitions {error.partitions}.",
        ) from None


async def _delete(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    try:
        return await writes.delete(request.asker, topic, deadline=request.deadline)
    except TopicMissing:
        raise refused(404, f"Topic {topic} not found") from None
    except PartitionedRefused:
        raise refused(
            409,
            f"{topic} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
        ) from None


async def _delete_partitioned(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    _check_not_partition(topic)
    try:
        return await writes.delete_partitioned(request.asker, topic, deadline=request.deadline)
    except TopicMissing:
        if await writes.catalog.topic(topic) is None:
            raise refused(404, f"Topic {topic} not found.") from None
        raise refused(
            409,
            f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
        ) from None


async def _set_properties(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    return await _merge(request, writes, topic, await properties_in(request))


async def _remove_property(request: ApiRequest, writes: TopicWrites, topic: TopicName) -> TopicWrite:
    key = request.values.get("key")
    return await _merge(request, writes, topic, {} if key is None else {key: None})


async def _merge(
    request: ApiRequest, writes: TopicWrites, topic: TopicName, properties: Mapping[str, str | None]
) -> TopicWrite:
    if topic.partition >= 0:
        whole = topic.partitioned_name
        raise refused(412, f"{topic} is a partition: it has the properties of its topic, {whole}")
    try:
        return await writes.merge(request.asker, topic, properties, deadline=request.deadline)
    except TopicMissing:
        raise refused(404, f"Topic {topic} not found") from None


def _no_partition(topic: TopicName, partitions: int) -> RequestRefused:
    base = topic.local.rpartition(PARTITION_SUFFIX)[0]
    why = f"numeric value if there isn't a partitioned topic {base} created."
    if partitions:
        why = f"a number smaller than number of partition of partitioned topic {base}"
    return refused(412, f"""Can't create topic {topic.local} with "-partition-" followed by {why}""")


def _exists() -> RequestRefused:
    return refused(409, "This topic already exists")


def _not_partitioned(topic: TopicName) -> RequestRefused:
    return refused(409, f"Topic {topic} is not the partitioned topic.")


def _check_not_partition(topic: TopicName) -> None:
    if topic.partition >= 0:
        raise refused(412, "Partitioned Topic Name should not contain '-partition-'")
