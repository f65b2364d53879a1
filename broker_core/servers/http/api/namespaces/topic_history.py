"""``GET .../topics/{topic}/history``: the changes in the log of one topic, and of topics that had its name before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from aiohttp import web
from pydantic import Field

from broker_core.access import Access
from broker_core.catalog import topic_id_text
from broker_core.change_log import Change, ListedNames, Operation
from broker_core.counted import counted
from broker_core.names import TopicName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import MAKING, MOST_BYTES, HeldAnswer, filled, within_bytes
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.namespaces.show_topic import topic_asker
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.parameters import limit_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices, needs_catalog
from broker_core.servers.http.api.topic_object import TOPIC, TOPIC_PATH, topic_of

__all__ = ["operations"]


class _State(JsonObject):
    """A topic before or after a change."""

    names: int = Field(description="How many names it was listed by, each partition one.")
    properties: dict[str, str]
    configs: dict[str, str]


class _Change(JsonObject):
    version: int | None = Field(
        description="The version of the namespace; null if masks or rules hide topics, whose changes it counts too."
    )
    time: str = Field(json_schema_extra={"format": "date-time"})
    operation: Literal["create", "update", "delete"]
    topic_id: str = Field(description="A name that is made anew is another topic, with another id.")
    before: _State | None = Field(description="Null if the topic was created.")
    after: _State | None = Field(description="Null if the topic was deleted.")

    @classmethod
    def of(cls, change: Change, *, counts_hidden: bool) -> _Change:
        return cls(
            version=None if counts_hidden else change.version,
            time=time_text(change.time),
            operation=change.operation.value,
            topic_id=topic_id_text(change.topic_id),
            before=None
            if change.operation is Operation.CREATE
            else _state(change.listed_before, change.properties_before, change.configs_before),
            after=None
            if change.operation is Operation.DELETE
            else _state(change.listed_after, change.properties_after, change.configs_after),
        )


class _History(JsonObject):
    topic: str
    items: list[_Change] = Field(description="The newest is first.")
    complete: bool = Field(
        description="Whether the log reaches back to the first version of the namespace, and all is shown; false "
        "if masks hide topics."
    )
    says: str | None = Field(description="What is missing, in words; null if nothing is.")


_EXAMPLE: Final = {
    "topic": "persistent://public/default/orders",
    "items": [
        {
            "version": 1,
            "time": "2026-11-22T18:49:05.694+00:00",
            "operation": "create",
            "topic_id": "pLW3lPqvQYyE8maO_j3eRw",
            "before": None,
            "after": {"names": 2, "properties": {"region": "eu"}, "configs": {}},
        }
    ],
    "complete": True,
    "says": None,
}


_MASKED: Final = (
    "Plugins hide topics of this namespace: only a topic that is there for you has a history, from the change that "
    "made it."
)


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    return [
        HttpOperation(
            "GET",
            f"{TOPIC_PATH}/history",
            "showTopicHistory",
            "The changes of a topic in the change log, and of the topics that had its name before.",
            Right.LIST,
            _show,
            {
                200: Reply(
                    "Its changes; none of a name that the log does not have.",
                    {"application/json": _History},
                    examples={"application/json": _EXAMPLE},
                ),
                409: Reply("Plugins list topics of this namespace (CONFLICT)."),
                501: Reply("Brokers hold the topics."),
            },
            description="The log has the last changes of a namespace, 50,000 of them as a rule. Masks are asked about "
            "existing topics: if they hide some, only a topic that exists for the client has a history, from the "
            "change that made it. An answer has 1 MiB of changes at the most, or one, whatever the `limit`.",
            parameters=(TOPIC, limit_parameter("Changes at the most.", 1000, 100)),
        )
    ]


async def _show(request: ApiRequest) -> web.StreamResponse:
    services = request.services
    pipeline, topic = services.pipeline, topic_of(request).partitioned_name
    pipeline.ask_rules(Access("list", topic.namespace, topic, request.asker))
    needs_catalog(services)
    if pipeline.dispatcher.lists(topic.namespace):
        raise refused(409, "plugins list topics of this namespace, so its change log is not what clients see")
    async with HeldAnswer(request) as held:
        await held.hold(MAKING)
        return await held.write(await _history(request, topic))


async def _history(request: ApiRequest, topic: TopicName) -> Callable[[], bytes]:
    """A function that makes the history, as the client may see it; its memory is that of one answer."""
    services, limit = request.services, request.values["limit"]
    pipeline = services.pipeline
    assert services.change_log is not None
    changes, begin, cut = await services.change_log.history(topic, limit, MOST_BYTES)
    masked = pipeline.dispatcher.masks(topic.namespace)
    if masked:
        (found,) = await services.find.by_name(topic_asker(request), [topic])
        if found.failure is not None:
            raise found.failure
        its_id = None if found.record is None else found.record.topic_id
        changes = [each for each in changes if each.topic_id == its_id]
    hides = pipeline.hides(request.asker, topic.namespace)
    shown = [] if topic.is_system else changes

    def make() -> bytes:
        items, whole = within_bytes(_Change.of(each, counts_hidden=hides) for each in shown)
        says = None
        if masked:
            says = _MASKED  # and no more: the log counts changes of what is hidden
        elif cut or not whole:
            says = f"The history was cut after {counted(len(items), 'change')}; there may be older ones."
        elif begin.number:
            says = "Older changes are no longer in the log."
        return filled(_History(topic=str(topic), items=[], complete=says is None, says=says), "items", items)

    return make


def _state(listed: ListedNames, properties: Mapping[str, str], configs: Mapping[str, str]) -> _State:
    return _State(names=len(listed), properties=dict(properties), configs=dict(configs))
