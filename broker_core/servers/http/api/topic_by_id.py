"""``GET`` and ``DELETE /v1/topics/by-id/{topic_id}``: one topic by its id (KIP-516), in any namespace.

A client that may not see a topic gets the answer that there is none with this id.
"""

from __future__ import annotations

import uuid
from typing import Final

from aiohttp import web

from broker_core.catalog import Edit, PreconditionFailed, TopicRecord, deletion, parse_topic_id, topic_id_text
from broker_core.change_log import version_text
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.immutable import copied
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.etag import IF_MATCH, KNOWN, check_conditions
from broker_core.servers.http.api.namespaces.show_topic import SHOWN_REPLIES, shown, topic_asker
from broker_core.servers.http.api.operation import CHANGE_PROBLEMS, HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices, needs_catalog, needs_changes
from broker_core.servers.http.api.topic_object import TOPIC_ID_PATTERN
from broker_core.servers.http.api.writes.change_topic import NAMESPACE_VERSION
from broker_core.service import Found, TopicAsker

__all__ = ["operations"]

_PATH: Final = "/v1/topics/by-id/{topic_id}"


def _read(text: str) -> uuid.UUID:
    try:
        return parse_topic_id(text)
    except InvalidName:
        raise ValueError("must be 22 characters of base64, or a UUID in hexadecimal") from None


_TOPIC_ID: Final = Parameter(
    "topic_id",
    "The id of a topic: base64 as Kafka's tools print it, or hexadecimal.",
    read=_read,
    schema={"type": "string", "pattern": TOPIC_ID_PATTERN},
    within="path",
    example="pLW3lPqvQYyE8maO_j3eRw",
)
_UNKNOWN: Final = Reply("There is no topic of this id for this client.")


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    return [
        HttpOperation(
            "GET",
            _PATH,
            "showTopicById",
            "The details of the topic of an id.",
            Right.CREDENTIALS,  # the use case asks rules and gates
            _show,
            SHOWN_REPLIES | {404: _UNKNOWN, 501: CHANGE_PROBLEMS[501]},
            description="A name that is made anew is another topic: the former id stays unknown.",
            parameters=(_TOPIC_ID, KNOWN),
        ),
        HttpOperation(
            "DELETE",
            _PATH,
            "deleteTopicById",
            "Delete the topic of an id, with all of its partitions.",
            Right.CREDENTIALS,
            _delete,
            {
                204: Reply("It is gone.", headers={NAMESPACE_VERSION: "The version of the namespace."}),
                404: _UNKNOWN,
                412: Reply("The topic does not meet If-Match (PRECONDITION)."),
                **CHANGE_PROBLEMS,
            },
            description="A topic that has its name by now is left as it is.",
            parameters=(_TOPIC_ID, IF_MATCH),
            tag="writes",
            changes="delete_topic",
        ),
    ]


async def _show(request: ApiRequest) -> web.StreamResponse:
    return await shown(request, await _found(request, topic_asker(request)))


async def _delete(request: ApiRequest) -> web.StreamResponse:
    services, topic_id = request.services, request.values[_TOPIC_ID.name]
    changes = needs_changes(services)
    changes.check_transport(request.asker)
    # Rules and gates come after masks; the use case that changes asks them.
    found = await _found(request, copied(topic_asker(request), action=None))
    assert found.name is not None
    attempt = request.attempt
    attempt.namespace, attempt.target = str(found.name.namespace), str(found.name)
    try:
        await changes.allow(attempt, found.name, request.deadline)
    except ListingFailed as failure:
        if failure.cause is Cause.DENIED:
            await _found(request, topic_asker(request))  # else nothing may show that there is such a topic
        raise

    def check(there: TopicRecord | None) -> None:
        if there is None or there.topic_id != topic_id:
            raise _Gone("another topic has the name by now")
        check_conditions(there, request.values[IF_MATCH.name], None)

    try:
        edit = Edit(found.name, deletion(found.name), check)
        write = await changes.change_one(attempt, edit, request.deadline)
    except _Gone:
        raise _unknown(topic_id) from None
    return web.Response(status=204, headers={NAMESPACE_VERSION: version_text(write.version)})


class _Gone(PreconditionFailed):
    """The topic of a request was deleted since it was looked up."""


async def _found(request: ApiRequest, asker: TopicAsker) -> Found:
    """The topic of the request's id. Raises the error 404 if the client may not know of it."""
    services, topic_id = request.services, request.values[_TOPIC_ID.name]
    of_kafka = services.kafka_namespace
    if of_kafka is None:
        needs_catalog(services)
    for namespace in (
        *([] if services.catalog is None else [None]),
        *([] if of_kafka is None else [of_kafka]),
    ):
        (found,) = await services.find.by_id(copied(asker, namespace=namespace), [topic_id])
        if found.failure is not None and found.failure.cause is not Cause.DENIED:
            raise found.failure
        if found.exists:
            return found
    raise _unknown(topic_id)


def _unknown(topic_id: uuid.UUID) -> RequestRefused:
    return refused(404, f"there is no topic of the id {topic_id_text(topic_id)}")
