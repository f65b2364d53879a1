"""One topic as `pulsar-admin` makes, changes and deletes it: in the embedded catalogue, or in a Kafka cluster.

docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from aiohttp import web

from broker_core.catalog import (
    MAX_PROPERTIES_BYTES,
    CatalogError,
    Decide,
    Edit,
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    TopicRecord,
    creation,
    deletion,
    merge,
)
from broker_core.compact_json import ascii_json, read_json
from broker_core.errors import Cause
from broker_core.names import DOMAINS, PARTITION_SUFFIX, TopicName
from broker_core.servers.http.admin.lookups import described
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.admin.topic_path import topic_of_path
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.operation import Body, HttpOperation
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import needs_changes
from broker_core.service import Action

__all__ = ["operations"]

_JSON: Final = "application/json"
_METADATA: Final = "application/vnd.partitioned-topic-metadata+json"
_OBJECT: Final = {"type": "object"}
_MOST_BYTES: Final = 4 * MAX_PROPERTIES_BYTES
#: A number as Java reads it in a text; Python takes more, such as an underscore.
_DIGITS: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*", re.ASCII)

_PROPERTIES: Final = Body({_JSON: _OBJECT}, _MOST_BYTES, required=False)
_PARTITIONS: Final = Body({_JSON: {"type": "integer"}, _METADATA: _OBJECT}, _MOST_BYTES, required=False)
#: A name that ends with a number of a partition as no partition is named: with zeros before it.
_ODD_PARTITION: Final = re.compile(f"{PARTITION_SUFFIX}0[0-9]+$", re.ASCII)

#: Reads the wanted change of a topic.
_Wanted: TypeAlias = Callable[[ApiRequest, TopicName], Awaitable[Decide]]
#: A broker's own texts for errors of the catalogue, if it has some.
_Refusals: TypeAlias = Mapping[type[CatalogError], Callable[[TopicName, Any], RequestRefused]]


def operations() -> list[HttpOperation]:
    """The operations of this file."""
    found: list[HttpOperation] = []
    for domain in DOMAINS:
        topic = f"{ADMIN}{domain}/{{tenant}}/{{namespace}}/{{topic}}"

        def write(
            method: str,
            path: str,
            action: Action,
            wanted: _Wanted,
            refusals: _Refusals,
            body: Body | None = None,
            of: str = domain,
        ) -> None:
            handler = partial(_written, domain=of, wanted=wanted, refusals=refusals)
            found.append(declared(method, path, handler, body=body, changes=action))

        partitions, properties = f"{topic}/partitions", f"{topic}/properties"
        write("PUT", topic, "create_topic", _create, _NOT_CREATED, _PROPERTIES)
        write("DELETE", topic, "delete_topic", _delete, _NOT_DELETED)
        write("PUT", partitions, "create_topic", _create_partitioned, _NOT_PARTITIONED, _PARTITIONS)
        write("POST", partitions, "add_partitions", _grow, _NOT_GROWN, _PARTITIONS)
        write("DELETE", partitions, "delete_topic", _delete_partitioned, _NO_PARTITIONS_DELETED)
        write("PUT", properties, "change_topic", _set_properties, _MISSING, _PROPERTIES)
        write("DELETE", properties, "change_topic", _remove_property, _MISSING)
        found.append(declared("GET", f"{topic}/properties", partial(_properties, domain=domain)))
    return found


async def _properties(request: ApiRequest, *, domain: str) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    needs_changes(request.services, topic.namespace)
    _, properties = await described(request, topic, rules="list")
    return json_response(200, properties)


async def _written(
    request: ApiRequest, *, domain: str, wanted: _Wanted, refusals: _Refusals
) -> web.StreamResponse:
    topic = topic_of_path(request, domain, 5)
    request.attempt.target = str(topic)
    changes = needs_changes(request.services, topic.namespace)
    await changes.allow(request.attempt, topic, request.deadline)  # before the body is read
    try:
        edit = Edit(topic, await wanted(request, topic))
        await changes.change_one(request.attempt, edit, request.deadline)
    except CatalogError as error:
        refusal = refusals.get(type(error))
        if refusal is None:
            raise
        raise refusal(topic, error) from None
    return web.Response(status=204)


async def _create(request: ApiRequest, topic: TopicName) -> Decide:
    properties = await _properties_in(request)
    if _ODD_PARTITION.search(topic.local):  # a broker takes it for a partition, and finds none of that number
        raise _no_partition(topic, 0)
    return creation(topic, 0, properties)


async def _create_partitioned(request: ApiRequest, topic: TopicName) -> Decide:
    partitions, properties = await _partitions_in(request)
    if partitions <= 0:
        raise refused(406, "Number of partitions should be more than 0")
    _check_not_partition(topic)
    return creation(topic, partitions, properties)


async def _grow(request: ApiRequest, topic: TopicName) -> Decide:
    partitions, _ = await _partitions_in(request)
    _check_not_partition(topic)
    more = merge(topic, {}, max(partitions, 0))

    def decide(there: TopicRecord | None) -> TopicRecord | None:
        try:
            return more(there)
        except PartitionCountRefused as error:
            error.wanted = partitions  # as given, below 0 too
            raise

    return decide


async def _delete(_request: ApiRequest, topic: TopicName) -> Decide:
    return deletion(topic, partitioned=False)


async def _delete_partitioned(_request: ApiRequest, topic: TopicName) -> Decide:
    _check_not_partition(topic)
    return deletion(topic, partitioned=True)


async def _set_properties(request: ApiRequest, topic: TopicName) -> Decide:
    return _merge(topic, await _properties_in(request))


async def _remove_property(request: ApiRequest, topic: TopicName) -> Decide:
    key = request.values.get("key")
    return _merge(topic, {} if key is None else {key: None})


def _merge(topic: TopicName, properties: Mapping[str, str | None]) -> Decide:
    if topic.partition >= 0:
        whole = topic.partitioned_name
        raise refused(412, f"{topic} is a partition: it has the properties of its topic, {whole}")
    return merge(topic, properties)


def _no_partition(topic: TopicName, partitions: int) -> RequestRefused:
    base = topic.local.rpartition(PARTITION_SUFFIX)[0]
    why = f"numeric value if there isn't a partitioned topic {base} created."
    if partitions:
        why = f"a number smaller than number of partition of partitioned topic {base}"
    return refused(412, f"""Can't create topic {topic.local} with "-partition-" followed by {why}""")


def _check_not_partition(topic: TopicName) -> None:
    if topic.partition >= 0:
        raise refused(412, "Partitioned Topic Name should not contain '-partition-'")


def _not_grown(topic: TopicName, error: PartitionCountRefused) -> RequestRefused:
    if error.partitions == 0:
        return _plain(topic)
    now = "" if error.partitions is None else f" {error.partitions}"
    return refused(422, f"Desired partitions {error.wanted} can't be less than the current partitions{now}.")


def _plain(topic: TopicName, _error: object = None) -> RequestRefused:
    return refused(409, f"Topic {topic} is not the partitioned topic.")


_MISSING: Final[_Refusals] = {TopicMissing: lambda topic, _: refused(404, f"Topic {topic} not found")}
_NOT_CREATED: Final[_Refusals] = {
    TopicExists: lambda _topic, _: refused(409, "This topic already exists"),
    PartitionRefused: lambda topic, error: _no_partition(topic, error.partitions),
}
_INVALID: Final[_Refusals] = {TopicInvalid: lambda _topic, error: refused(406, str(error))}
_NOT_PARTITIONED: Final[_Refusals] = {**_INVALID, TopicExists: _NOT_CREATED[TopicExists]}
_NOT_GROWN: Final[_Refusals] = {**_INVALID, TopicMissing: _plain, PartitionCountRefused: _not_grown}
_NOT_DELETED: Final[_Refusals] = {
    **_MISSING,
    PartitionedRefused: lambda topic, _: refused(
        409,
        f"{topic} is a partitioned topic, instead of calling delete topic, please call delete-partitioned-topic.",
    ),
}
_NO_PARTITIONS_DELETED: Final[_Refusals] = {
    TopicMissing: lambda topic, _: refused(404, f"Topic {topic} not found."),
    PartitionedRefused: lambda topic, _: refused(
        409,
        f"{topic} is a non-partitioned topic. Instead of calling delete-partitioned-topic please call delete.",
    ),
}


async def _properties_in(request: ApiRequest) -> dict[str, str]:
    """The properties of the body; none if it is empty. Raises the error 400."""
    return _pairs(await _json_of(request))


async def _partitions_in(request: ApiRequest) -> tuple[int, dict[str, str]]:
    """The number of partitions, and the properties of the topic if the body has both. Raises the error 400."""
    value = await _json_of(request)
    if value is None:
        raise _bad("The request entity cannot be empty.")
    if isinstance(value, Mapping) and request.http.content_type == _METADATA:
        return _number(value.get("partitions", 0)), _pairs(value.get("properties"))
    return _number(value), {}


async def _json_of(request: ApiRequest) -> Any:
    body = await request.content() if request.http.body_exists else b""
    if not body.strip():
        return None
    try:
        return read_json(body)
    except (ValueError, RecursionError) as error:
        raise _bad(f"The body is no JSON: {error}"[:300]) from None


def _pairs(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _bad("The properties are no object of JSON")
    return {key: _text(key, each) for key, each in value.items()}


def _text(key: str, value: Any) -> str:
    """The value of a property. A broker reads numbers and truths as text, and so does this."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise _bad(f"The value of the property {key!r:.100} is no text")
    return ascii_json(value)


def _number(value: Any) -> int:
    """The number of partitions. A broker reads texts and fractions as numbers, and so does this."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _bad("The number of partitions is no number")
    return value


def _bad(detail: str) -> RequestRefused:
    return refused(400, detail, Cause.BAD_REQUEST)
