"""``GET /v1/namespaces/{tenant}/{namespace}/topics/{topic}``: the details of one topic.

A topic that is hidden from the listings of a client is hidden here: the answer is 404, as if there were none.
"""

from __future__ import annotations

import uuid
from datetime import UTC
from typing import Any, Final

from aiohttp import hdrs, web

from broker_core.catalog import topic_id_text
from broker_core.names import TopicName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.etag import KNOWN, EntityTags, topic_etag
from broker_core.servers.http.api.json_object import time_text
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topic_object import (
    TOPIC,
    TOPIC_EXAMPLE,
    TOPIC_PATH,
    ShownTopic,
    TopicObject,
    topic_of,
)
from broker_core.service import Found, TopicAsker, is_ordinary

__all__ = ["SHOWN_REPLIES", "found_topic", "operations", "shown", "topic_asker"]

_WANTS: Final = frozenset({"partitions", "topic_id", "properties", "configs", "created"})
#: The replies of operations that show a topic.
SHOWN_REPLIES: Final = {
    200: Reply(
        "The topic.",
        {"application/json": ShownTopic},
        {"ETag": "Of the topic, for `If-Match` of a change; of topics of the catalogue alone."},
        {"application/json": TOPIC_EXAMPLE},
    ),
    304: Reply("The client has this state of the topic already.", headers={"ETag": "Of the topic."}),
}


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    return [
        HttpOperation(
            "GET",
            TOPIC_PATH,
            "showTopic",
            "The details of one topic.",
            Right.CREDENTIALS,  # the use case asks rules and gates
            _show,
            SHOWN_REPLIES | {404: Reply("There is no such topic for this client.")},
            description="A topic that is hidden from the listings of a client is hidden here too. A null is unknown: "
            "plugins and brokers do not say everything of the topics that they list.",
            parameters=(TOPIC, KNOWN),
        )
    ]


async def _show(request: ApiRequest) -> web.StreamResponse:
    return await shown(request, await found_topic(request))


async def found_topic(request: ApiRequest) -> Found:
    """The topic of a request's path, that of a partition too, if there is one for the client.

    Raises the error 404, and :exc:`~broker_core.errors.ListingFailed`.
    """
    topic = topic_of(request)
    base = topic.partitioned_name
    names = [topic] if topic is base else [topic, base]
    found, *of_topic = await request.services.find.by_name(topic_asker(request), names)
    if found.failure is not None:
        raise found.failure
    if not found.exists:
        raise refused(404, f"there is no topic {topic}")
    is_own = found.record is not None and found.record.name == topic
    return found if is_own or not of_topic else of_topic[0]


def topic_asker(request: ApiRequest) -> TopicAsker:
    """The question of a request for a topic, by the right to list its namespace."""
    return TopicAsker(
        asker=request.asker,
        action="list",
        of_namespace=True,
        can_have=is_ordinary,
        wants=_WANTS,
        deadline=request.deadline,
    )


async def shown(request: ApiRequest, found: Found) -> web.Response:
    """The response that shows a topic; 304 if the request has the parameter :data:`KNOWN`, and it is met."""
    assert found.name is not None
    if found.record is None:
        return _object(found.name, found).response()
    services, record = request.services, found.record
    etag = topic_etag(record)
    known: EntityTags | None = request.values.get(KNOWN.name)
    if known is not None and known.matches(etag, weakly=True):
        return web.Response(status=304, headers={hdrs.ETAG: etag})
    assert services.change_log is not None
    namespace = record.name.namespace
    shown = TopicObject.of(record, await services.change_log.version(namespace))
    changes: dict[str, Any] = {"partitions": found.partitions}
    if services.pipeline.hides(request.asker, namespace):
        changes["version"] = None  # it counts hidden topics too
    response = ShownTopic(**shown.content() | changes).response()
    response.headers[hdrs.ETAG] = etag
    return response


def _object(topic: TopicName, found: Found) -> TopicObject:
    """A topic that a plugin lists, or brokers."""
    details = found.details
    created = details.get("created")
    content: dict[str, Any] = {
        **dict.fromkeys(ShownTopic.model_fields),
        "name": str(topic),
        "partitions": found.partitions,
        "topic_id": topic_id_text(uuid.UUID(bytes=details["topic_id"])) if "topic_id" in details else None,
        "properties": details.get("properties"),
        "configs": details.get("configs"),
        "created": None if created is None else time_text(created.replace(tzinfo=UTC)),
    }
    return ShownTopic(**content)
