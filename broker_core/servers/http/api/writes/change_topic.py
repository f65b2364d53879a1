"""The operations ``PUT``, ``PATCH`` and ``DELETE`` of one topic."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from aiohttp import hdrs, web
from pydantic import BeforeValidator, Field, SkipValidation
from pydantic_core import PydanticCustomError

from broker_core.catalog import (
    MAX_PROPERTIES_BYTES,
    Decide,
    Edit,
    TopicRecord,
    TopicWrite,
    deletion,
    has_name,
    merge,
    replacement,
)
from broker_core.change_log import version_text
from broker_core.names import MAX_PARTITIONS, TopicName
from broker_core.servers.http.api.api_request import ApiRequest, RequestObject
from broker_core.servers.http.api.etag import IF_MATCH, IF_NONE_MATCH, check_conditions, topic_etag
from broker_core.servers.http.api.json_object import whole
from broker_core.servers.http.api.namespaces.show_topic import topic_asker
from broker_core.servers.http.api.operation import CHANGE_PROBLEMS, Body, HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices, needs_changes
from broker_core.servers.http.api.topic_object import (
    TOPIC,
    TOPIC_EXAMPLE,
    TOPIC_PATH,
    TopicObject,
    WrittenTopic,
    path_of,
    topic_of,
)
from broker_core.service import TopicEditor

__all__ = ["NAMESPACE_VERSION", "operations"]

#: The header of the answer to a change, with the version of the namespace after it.
NAMESPACE_VERSION: Final = "Namespace-Version"

#: Bytes of a body: the largest properties, each character of which may be escaped.
_MOST_BYTES: Final = 8 * MAX_PROPERTIES_BYTES
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"


def _given(value: Any) -> Any:
    """Validate that a value is not null."""
    if value is None:
        raise PydanticCustomError("null", "")
    return whole(value)


#: A left-out member of these types stays as it is. Bounds, and the members of an object, are rules of all changes.
_Partitions: TypeAlias = Annotated[
    int | None,
    BeforeValidator(_given),
    Field(
        description="0: a topic without any. They only grow.",
        json_schema_extra={"type": "integer", "minimum": 0, "maximum": MAX_PARTITIONS},
    ),
]
_Texts: TypeAlias = Annotated[
    SkipValidation[dict[str, str] | None],
    BeforeValidator(_given),
    Field(json_schema_extra={"type": "object"}),
]
_Changes: TypeAlias = SkipValidation[dict[str, str | None] | None]


class _TopicBody(RequestObject):
    wrong = {  # noqa: RUF012 - not a field
        "": 'the body must be an object such as {"partitions": 3, "properties": {"region": "eu"}}',
        "partitions": "partitions must be a whole number",
        "properties": "properties must be an object of strings",
        "configs": "configs must be an object of strings",
    }


class _Content(_TopicBody):
    partitions: _Partitions = 0
    properties: _Texts = Field(default={}, description="All that the topic has: others are taken away.")
    configs: _Texts = Field(
        default=None,
        description="All configs of Kafka that are set for the topic. Left out: those that it has stay.",
    )


class _Merge(_TopicBody):
    partitions: _Partitions = None
    properties: _Changes = Field(
        default={},
        description="The value null takes a property away, null in place of the object all of them.",
    )
    configs: _Changes = Field(
        default={},
        description="The value null takes a config of Kafka away, null in place of the object all of them.",
    )


_HEADERS: Final = {
    "ETag": "Of the topic as it is now, for If-Match.",
    NAMESPACE_VERSION: "The version of the namespace.",
}
_EXAMPLE: Final = {_JSON: TOPIC_EXAMPLE}
_REFUSALS: Final = {
    409: Reply("The existing topics do not allow it, such as fewer partitions (CONFLICT)."),
    412: Reply("The topic does not meet If-Match or If-None-Match (PRECONDITION)."),
    **CHANGE_PROBLEMS,
}
_ETAG: Final = "Another topic, or another state of it, is not touched with `If-Match`."


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    topic = {"application/json": WrittenTopic}
    return [
        HttpOperation(
            "PUT",
            TOPIC_PATH,
            "putTopic",
            "Create a topic, or replace its content.",
            Right.CREDENTIALS,
            _put,
            {
                200: Reply("The topic existed, and has this content now.", topic, _HEADERS, _EXAMPLE),
                201: Reply(
                    "The topic was made.", topic, _HEADERS | {"Location": "The path of the topic."}, _EXAMPLE
                ),
                **_REFUSALS,
            },
            description="The topic has this content then. An existing topic with other content stays as it is "
            "(409), unless `If-Match` says which state is to be replaced. It keeps its id; partitions can only be "
            "added, and one that is missing comes back. `If-None-Match: *` only creates.",
            parameters=(TOPIC, IF_MATCH, IF_NONE_MATCH),
            body=Body(
                {_JSON: _Content},
                _MOST_BYTES,
                "What the topic shall have; partitions and properties that are left out are none.",
                examples={_JSON: {"partitions": 2, "properties": {"region": "eu"}}},
            ),
            tag="writes",
            changes="put_topic",
        ),
        HttpOperation(
            "PATCH",
            TOPIC_PATH,
            "patchTopic",
            "Change some properties or configs of a topic, or add partitions.",
            Right.CREDENTIALS,
            _patch,
            {
                200: Reply("The topic as it is now.", topic, _HEADERS, _EXAMPLE),
                404: Reply("There is no such topic."),
                **_REFUSALS,
            },
            description="As in RFC 7396: what is not named stays as it is. With a number of partitions, one that is "
            f"missing comes back. {_ETAG}",
            parameters=(TOPIC, IF_MATCH, IF_NONE_MATCH),
            body=Body(
                {_MERGE_PATCH: _Merge, _JSON: _Merge},
                _MOST_BYTES,
                "What changes.",
                examples={_MERGE_PATCH: {"properties": {"region": "us", "team": None}}},
            ),
            tag="writes",
            changes="change_topic",
        ),
        HttpOperation(
            "DELETE",
            TOPIC_PATH,
            "deleteTopic",
            "Delete a topic with all of its partitions, or one partition.",
            Right.CREDENTIALS,
            _delete,
            {
                204: Reply("It is gone.", headers={NAMESPACE_VERSION: _HEADERS[NAMESPACE_VERSION]}),
                404: Reply("There is no such topic."),
                **_REFUSALS,
            },
            description=_ETAG,
            parameters=(TOPIC, IF_MATCH, IF_NONE_MATCH),
            tag="writes",
            changes="delete_topic",
        ),
    ]


async def _put(request: ApiRequest) -> web.StreamResponse:
    topic, changes = _topic_of_path(request)
    await changes.allow(request.attempt, topic, request.deadline)
    content = _Content.read(await request.json())
    if_match, if_none_match = request.values[IF_MATCH.name], request.values[IF_NONE_MATCH.name]
    decide = replacement(
        topic,
        content.partitions or 0,
        content.properties,
        may_replace=if_match is not None,
        configs=content.configs,
    )
    # Without conditions nothing is asked of the topic before it is changed.
    require = None
    if if_match is not None or if_none_match is not None:
        require = partial(check_conditions, if_match=if_match, if_none_match=if_none_match)
    edit = Edit(topic, decide, require)
    write = await changes.change_one(request.attempt, edit, request.deadline)
    if write.before is not None and has_name(write.before, topic):
        return await _said(request, write)
    return await _said(request, write, 201, {str(hdrs.LOCATION): path_of(topic)})


async def _patch(request: ApiRequest) -> web.StreamResponse:
    topic, changes = _topic_of_path(request)
    await changes.allow(request.attempt, topic, request.deadline)
    wanted = _Merge.read(await request.json())
    decide = merge(topic, wanted.properties, wanted.partitions, wanted.configs)
    return await _said(request, await _changed_if_there(request, changes, topic, decide))


async def _delete(request: ApiRequest) -> web.StreamResponse:
    topic, changes = _topic_of_path(request)
    write = await _changed_if_there(request, changes, topic, deletion(topic))
    return web.Response(status=204, headers={NAMESPACE_VERSION: version_text(write.version)})


def _topic_of_path(request: ApiRequest) -> tuple[TopicName, TopicEditor]:
    topic = topic_of(request)
    changes = needs_changes(request.services, topic.namespace)
    request.attempt.target = str(topic)
    return topic, changes


async def _changed_if_there(
    request: ApiRequest, changes: TopicEditor, topic: TopicName, decide: Decide
) -> TopicWrite:
    """A change of an existing topic: for a missing one it raises the error 404, whatever the conditions."""

    def require(there: TopicRecord | None) -> None:
        if there is not None:
            check_conditions(there, request.values[IF_MATCH.name], request.values[IF_NONE_MATCH.name])

    return await changes.change_one(request.attempt, Edit(topic, decide, require), request.deadline)


async def _said(
    request: ApiRequest, write: TopicWrite, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """The answer with the changed topic; only its name if the client may not list it, since an empty change would
    show it otherwise.
    """
    record = write.after
    assert record is not None
    content = TopicObject.of(record, write.version).content()
    if not await _is_shown(request, record):
        content = dict.fromkeys(content) | {"name": content["name"]}
    return WrittenTopic(**content).response(
        status,
        {
            str(hdrs.ETAG): topic_etag(record),
            NAMESPACE_VERSION: version_text(write.version),
            **(headers or {}),
        },
    )


async def _is_shown(request: ApiRequest, written: TopicRecord) -> bool:
    """Whether the client may list a topic. If the rules deny it, nothing more is asked."""
    if not request.services.pipeline.authorization.may_list(request.asker, written.name):
        return False
    return await request.services.find.shows(topic_asker(request), written)
