"""``GET /v1/namespaces/{tenant}/{namespace}/topics/{topic}``: what is known of one topic.

Where plugins or brokers have a say it is a listing of one topic, so that whatever hides a topic from the listings of a
client hides it here: then, as where there is none, the answer is 404. Elsewhere the catalogue alone is asked, however
large the namespace is.
"""

from __future__ import annotations

import uuid
from datetime import UTC
from typing import Any, Final

import re2
from aiohttp import hdrs, web

from broker_core.access.access import Access
from broker_core.catalog import TopicRecord, reading_catalog, topic_id_text
from broker_core.names import PERSISTENT, Mode, NamespaceName, TopicName
from broker_core.pipeline import Answer
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.namespaces.plugin_views import is_plain
from broker_core.servers.http.api.operation import Operation, Parameter, Reply, Right, Schema
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topic_etag import ENTITY_TAGS, EntityTags, topic_etag
from broker_core.servers.http.api.topic_object import TOPIC_EXAMPLE, TOPIC_SCHEMA, topic_object
from broker_core.servers.http.api.topic_path import TOPIC, TOPIC_PATH, topic_of
from broker_core.servers.http.json_responses import json_response
from broker_core.service import Catalog

__all__ = ["IF_NONE_MATCH", "SHOWN_REPLIES", "operations", "topic_response"]

_WANTS: Final = frozenset({"partitions", "topic_id", "properties", "configs", "created"})
#: What only the catalogue knows for sure.
_NULLABLE: Final = ("topic_id", "properties", "configs", "created", "version")
_SHOWN: Final[Schema] = {
    **TOPIC_SCHEMA,
    "description": "A null is not known here.",
    "properties": {
        name: {**schema, "type": [schema["type"], "null"]} if name in _NULLABLE else schema
        for name, schema in TOPIC_SCHEMA["properties"].items()
    },
}
IF_NONE_MATCH: Final = Parameter(
    "If-None-Match",
    "The ETags that the client has; 304 where one of them is still that of the topic.",
    read=EntityTags,
    schema=ENTITY_TAGS,
    within="header",
)
#: What a topic that is shown may be answered with.
SHOWN_REPLIES: Final = {
    200: Reply(
        "The topic.",
        {"application/json": _SHOWN},
        {"ETag": "Of the topic, for `If-Match` of a change; of topics of the catalogue alone."},
        {"application/json": TOPIC_EXAMPLE},
    ),
    304: Reply("The client has it.", headers={"ETag": "Of the topic."}),
}


def operations(_services: ApiServices) -> list[Operation]:
    """The operation of this module."""
    return [
        Operation(
            "GET",
            TOPIC_PATH,
            "showTopic",
            "What is known of one topic.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _show,
            SHOWN_REPLIES | {404: Reply("There is none for this client.")},
            description="What hides a topic from the listings of a client hides it here too. A null is not known: of a "
            "topic that a plugin lists, or brokers.",
            parameters=(TOPIC, IF_NONE_MATCH),
        )
    ]


async def _show(request: ApiRequest) -> web.StreamResponse:
    topic = topic_of(request)
    response = await topic_response(request, topic)
    if response is None:
        raise refused(404, f"there is no topic {topic}")
    return response


async def topic_response(
    request: ApiRequest, topic: TopicName, topic_id: uuid.UUID | None = None
) -> web.Response | None:
    """A topic as the client may see it; ``None`` where it sees none of this name, or it has not this id.

    304 where the request has the parameter :data:`IF_NONE_MATCH`, and it is met. Raises what a listing raises.
    """
    catalog = request.services.catalog
    if catalog is not None and is_plain(request.services, topic.namespace):
        access = Access("list", topic.namespace, None, request.asker)
        await request.services.pipeline.authorize(access, request.deadline)
        record = None if topic.is_system else await _record(catalog, topic)
        return None if record is None else await _of_catalog(request, record, topic_id)
    base = topic.partitioned_name
    text = f"{base.domain}://{base.namespace}/{re2.escape(base.local)}"
    mode = Mode.PERSISTENT if topic.domain == PERSISTENT else Mode.NON_PERSISTENT
    question = ListingRequest(
        topic.namespace, mode, asker=request.asker, deadline=request.deadline, wants=_WANTS
    )
    services = request.services
    answer = await services.pipeline.answer(question, topics_pattern=text)
    try:
        found, lister = _found(answer, topic), answer.lister
    finally:
        answer.release()
    record = None
    if found is not None and services.catalog is not None and lister == services.pipeline.lister.name:
        record = await _record(services.catalog, topic)
        found = None if record is None else found
    if record is not None:
        return await _of_catalog(request, record, topic_id)
    return None if found is None or topic_id is not None else json_response(200, _object(base, found))


async def _of_catalog(
    request: ApiRequest, record: TopicRecord, topic_id: uuid.UUID | None
) -> web.Response | None:
    """A topic of the catalogue that the client may see; ``None`` where it has not this id."""
    if topic_id is not None and record.topic_id != topic_id:
        return None
    namespace = record.name.namespace
    etag = topic_etag(record)
    known: EntityTags | None = request.values.get(IF_NONE_MATCH.name)
    if known is not None and known.matches(etag, weakly=True):
        return web.Response(status=304, headers={hdrs.ETAG: etag})
    shown = topic_object(record, await _version(request, namespace))
    if request.services.pipeline.dispatcher.masks(namespace):
        shown["version"] = None  # it counts what is hidden too
    response = json_response(200, shown)
    response.headers[hdrs.ETAG] = etag
    return response


async def _record(catalog: Catalog, topic: TopicName) -> TopicRecord | None:
    """What the catalogue has of a topic now; ``None`` where it, or this partition, has gone meanwhile."""
    with reading_catalog():
        return await catalog.topic(topic)


async def _version(request: ApiRequest, namespace: NamespaceName) -> Any:
    assert request.services.change_log is not None
    return await request.services.change_log.version(namespace)


def _found(answer: Answer, topic: TopicName) -> dict[str, Any] | None:
    """The details of a topic that was listed; of the one of a partition, if the partition was."""
    selection, details = answer.selection, answer.details
    if selection is None or details is None:
        return None
    base = topic.partitioned_name
    if topic is not base:
        rows, present = selection.listing.locate([str(topic)])
        if not present[0] or int(rows[0]) not in selection.row_array:
            return None
    return next((row for row in details.to_pylist() if row["topic"] == str(base)), None)


def _object(topic: TopicName, found: dict[str, Any]) -> dict[str, Any]:
    """A topic that a plugin lists, or brokers."""
    topic_id, created = found["topic_id"], found["created"]
    return {
        "name": str(topic),
        "partitions": found["partitions"] or 0,
        "topic_id": None if topic_id is None else topic_id_text(uuid.UUID(bytes=topic_id)),
        "properties": found["properties"],
        "configs": found["configs"],
        "replication": None,
        "created": None
        if created is None
        else created.replace(tzinfo=UTC).isoformat(timespec="milliseconds"),
        "version": None,
    }
