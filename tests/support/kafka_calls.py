"""Calls of Kafka's APIs as handlers get them, without a server, for tests."""

from __future__ import annotations

from typing import Any

from broker_core.access.asker import Asker
from broker_core.names import NamespaceName
from broker_core.servers.kafka.callers.authorizer import Authorizer
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.services import KafkaOptions, KafkaServices, ShownNode
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.servers.kafka.topics.named_topics import NamedTopics
from broker_core.settings import KafkaSettings
from broker_core.wire.kafka import Api, Fields, RequestHeader
from tests.support.kafka_acls import AllowAll

__all__ = ["Nobody", "NotX", "answer_of", "call_of", "services_of"]


class Nobody(AllowAll):
    """Allows nothing."""

    def allows(self, *_: Any) -> bool:
        return False


class NotX(AllowAll):
    """Allows all but what has a name that begins with ``x``."""

    enabled = True

    def allows(self, _call: Any, _operation: Any, _kind: Any, name: str) -> bool:
        return not name.startswith("x")


def services_of(
    *,
    topics: ListedTopics | None = None,
    named: NamedTopics | None = None,
    authorizer: Authorizer | None = None,
    **kafka: Any,
) -> KafkaServices:
    """Services without a pipeline, for handlers that need none; ``kafka`` are settings of the table."""
    options = KafkaOptions(KafkaSettings(**kafka))
    authorizer = authorizer or AllowAll()
    topics = topics or ListedTopics(None, authorizer, None)  # type: ignore[arg-type]
    named = named or NamedTopics(None, authorizer)  # type: ignore[arg-type]
    return KafkaServices(None, None, options, "cluster", topics, named, authorizer=authorizer)  # type: ignore[arg-type]


def call_of(
    api: Api,
    version: int,
    body: Fields | None = None,
    *,
    role: str | None = None,
    services: KafkaServices | None = None,
) -> KafkaCall:
    """A request of this API; fields that are not named have their defaults."""
    return KafkaCall(
        header=RequestHeader(api.key, version, 1, "test"),
        body=api.request.defaults() | (body or {}),
        asker=Asker(role=role, remote_address="127.0.0.1:5000", transport="kafka"),
        namespace=NamespaceName.parse("public/default"),
        node=ShownNode(1, "127.0.0.1", 9092),
        services=services or services_of(),
        deadline=float("inf"),
    )


def answer_of(row: HandlerRow, call: KafkaCall) -> Fields:
    """The answer to a request, which takes no waiting."""
    made = row.answer(call)
    assert isinstance(made, dict)
    return made
