"""One topic as `pulsar-admin` makes, changes and deletes it: in the embedded catalogue.

docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from aiohttp import web

from broker_core.catalog import (
    Decide,
    Edit,
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    TopicWrite,
    creation,
    deletion,
    merge,
)
from broker_core.names import DOMAINS, TopicName
from broker_core.names.partition_suffix import PARTITION_SUFFIX
from broker_core.servers.http.admin.bodies import PARTITIONS, PROPERTIES, partitions_in, properties_in
from broker_core.servers.http.admin.lookups import described
from broker_core.servers.http.admin.namespaces import catalog_of
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.admin.topic_path import topic_of_path
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Body, Operation
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import needs_changes
from broker_core.service import Action

__all__ = ["operations"]

#: A name that ends with a number of a partition as no partition is named: with zeros before it.
_ODD_PARTITION: Final = re.compile(f"{PARTITION_SUFFIX}0[0-9]+$", re.ASCII)

#: Changes a topic of a catalogue, or raises what a client is told.
_Write: TypeAlias = Callable[[ApiRequest, TopicName], Awaitable[TopicWrite]]


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
    _, properties = await described(request, topic)
    return web.json_response(properties)


async def _written(request: ApiRequest, *, domain: str, change: _Write) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    request.attempt.target = str(topic)
    catalog_of(request.services)
    changes = needs_changes(request.services)
    await changes.allow(request.attempt, topic, request.deadline)  # before the body is read
    await change(request, topic)
    return web.Response(status=204)


async def _changed(request: ApiRequest, topic: TopicName, decide: Decide) -> TopicWrite:
    changes = needs_changes(request.services)
    return await changes.change_one(request.attempt, Edit(topic, decide), request.deadline)


async def _create(request: ApiRequest, topic: TopicName) -> TopicWrite:
    properties = await properties_in(request)
    if _ODD_PARTITION.search(topic.local):  # a broker takes it for a partition, and finds none of that number
        raise _no_partition(topic, 0)
    try:
        return await _changed(request, topic, creation(topic, 0, properties))
    except TopicExists:
        raise _exists() from None
    except PartitionRefused as error:
        raise _no_partition(topic, error.partitions) from None


async def _create_partitioned(request: ApiRequest, topic: TopicName) -> TopicWrite:
    partitions, properties = await partitions_in(request)
    if partitions <= 0:
        raise refused(406, "Number of partitions should be more than 0")
    _check_not_partition(topic)
    try:
        return await _changed(request, topic, creation(topic, partitions, properties))
    except TopicExists:
        raise _exists() from None
    except TopicInvalid as error:
        raise refused(406, str(error)) from None


async def _grow(request: ApiRequest, topic: TopicName) -> TopicWrite:
    partitions, _ = await partitions_in(request)
    _check_not_partition(topic)
    try:
        return await _changed(request, topic, merge(topic, {}, max(partitions, 0)))
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


async def _delete(request: ApiRequest, topic: TopicName) -> TopicWrite:
    try:
        return await _changed(request, topic, deletion(topic, partitioned=False))
    except TopicMissing:
        raise refused(404, f"Topic {topic} not found") from None
    except PartitionedRefused:
        raise refused(
            409,
            f"{topic} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
        ) from None


async def _delete_partitioned(request: ApiRequest, topic: TopicName) -> TopicWrite:
    _check_not_partition(topic)
    try:
        return await _changed(request, topic, deletion(topic, partitioned=True))
    except TopicMissing:
        if await catalog_of(request.services).topic(topic) is None:
            raise refused(404, f"Topic {topic} not found.") from None
        raise refused(
            409,
            f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
        ) from None


async def _set_properties(request: ApiRequest, topic: TopicName) -> TopicWrite:
    return await _merge(request, topic, await properties_in(request))


async def _remove_property(request: ApiRequest, topic: TopicName) -> TopicWrite:
    key = request.values.get("key")
    return await _merge(request, topic, {} if key is None else {key: None})


async def _merge(request: ApiRequest, topic: TopicName, properties: Mapping[str, str | None]) -> TopicWrite:
    if topic.partition >= 0:
        whole = topic.partitioned_name
        raise refused(412, f"{topic} is a partition: it has the properties of its topic, {whole}")
    try:
        return await _changed(request, topic, merge(topic, properties))
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
