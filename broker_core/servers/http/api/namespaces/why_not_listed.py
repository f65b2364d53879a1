"""``POST .../topics/{topic}:why``: why a topic is in a client's listing, or is not, and what would make it pass."""

from __future__ import annotations

from typing import Final, Literal

from aiohttp import web
from pydantic import Field

from broker_core.access import Access
from broker_core.errors import ListingFailed
from broker_core.names import TopicName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.listing_problems import refused_parts_shown
from broker_core.servers.http.api.namespaces.question_as_client import (
    QuestionAsClient,
    body_of,
    read_question,
)
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices, takes_changes
from broker_core.servers.http.api.topic_object import TOPIC, TOPIC_PATH, path_of, topic_of
from broker_core.service import NeededChange, right_to, why_listed

__all__ = ["operations"]


class _Change(JsonObject):
    """A request that changes the catalogue."""

    method: Literal["PUT", "PATCH"]
    path: str
    body: dict[str, int | dict[str, str]]


class _Step(JsonObject):
    step: str = Field(
        description="`rules`, `gates`, `exists`, `mode`, `properties`, `pattern`, `masks`, `held` or `listing`."
    )
    passes: bool | None = Field(description="Whether the topic passes; null if that is not known.")
    by: str | None = Field(description="What decides: a rule, plugins, or the lister.")
    says: str
    needs: str | None = Field(description="What it would take, if it does not pass.")
    change: _Change | None = Field(
        description="The request that makes it pass; null if none does, if the topic would not be listed then "
        "either, or if the client may not change it here."
    )


class _Why(JsonObject):
    topic: str
    listed: bool | None = Field(
        description="Whether the answer has a name of the topic; null if it is an error."
    )
    blocked_by: str | None = Field(description="The first step that takes it away, or that fails.")
    steps: list[_Step] = Field(
        description="In the order of a listing; `change` is the request that lets the topic pass, if one does."
    )
    rules: list[str] = Field(
        description="The rules of the settings about the topic, for whatever role and action; super roles need none."
    )


_BODY: Final = {
    "pattern": "persistent://public/default/orders-.*",
    "properties": {"region": "eu"},
    "as": {"role": "team-a"},
}
_EXAMPLE: Final = {
    "topic": "persistent://public/default/orders-7",
    "listed": False,
    "blocked_by": "properties",
    "steps": [
        {
            "step": "exists",
            "passes": True,
            "by": "catalog",
            "says": "the topic is there with 4 partitions",
            "needs": None,
            "change": None,
        },
        {
            "step": "properties",
            "passes": False,
            "by": None,
            "says": "region=eu is asked, and the topic has region=us",
            "needs": "the property region=eu of the topic, or another question",
            "change": {
                "method": "PATCH",
                "path": "/v1/namespaces/public/default/topics/orders-7",
                "body": {"properties": {"region": "eu"}},
            },
        },
    ],
    "rules": ["rule 1: team-a may list in public/*"],
}


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    return [
        HttpOperation(
            "POST",
            f"{TOPIC_PATH}:why",
            "whyListed",
            "Why a topic is in the listing of a client, or is not, and what it would take.",
            Right.ADMIN,  # it names plugins and rules
            _why,
            {200: Reply("Each step.", {"application/json": _Why}, examples={"application/json": _EXAMPLE})},
            description="With `as` it is asked as another client, which needs the right `list` too and is in the audit "
            "log.",
            tag="server",
            parameters=(TOPIC,),
            body=body_of(services, QuestionAsClient, _BODY),
        )
    ]


async def _why(request: ApiRequest) -> web.StreamResponse:
    topic = topic_of(request)
    sent = QuestionAsClient.read(await request.json())
    async with refused_parts_shown(request, sent.pattern):
        question = await read_question(request, sent, topic)
    services = request.services
    why = await why_listed(services.pipeline, services.find, question, topic)
    may_change = any(each.change for each in why.steps) and await _may_change(request, topic.partitioned_name)
    steps = [
        _Step(
            step=each.step,
            passes=each.passes,
            by=each.by,
            says=each.says,
            needs=each.needs,
            change=_change(topic.partitioned_name, each.change) if may_change and each.change else None,
        )
        for each in why.steps
    ]
    rules = services.pipeline.authorization.rules_about(str(topic.namespace), topic.partitioned_name.local)
    return _Why(
        topic=str(topic), listed=why.listed, blocked_by=why.blocked_by, steps=steps, rules=rules
    ).response()


async def _may_change(request: ApiRequest, topic: TopicName) -> bool:
    """Whether the client may change a topic over HTTP, by rules and gates."""
    if not takes_changes(request.services, topic.namespace):
        return False
    access = Access(right_to("put_topic"), topic.namespace, topic, request.asker)
    try:
        await request.services.pipeline.authorize(access, request.deadline, some=True)
    except ListingFailed:
        return False
    return True


def _change(topic: TopicName, change: NeededChange) -> _Change:
    """The request for a change of a topic."""
    body: dict[str, int | dict[str, str]] = {}
    if change.partitions is not None:
        body["partitions"] = change.partitions
    if change.properties:
        body["properties"] = dict(change.properties)
    return _Change(method="PUT" if change.makes else "PATCH", path=path_of(topic), body=body)
