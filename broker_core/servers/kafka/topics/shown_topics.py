"""The topics that a Kafka client would see of a namespace: for ``broker-core explain``, without a server."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import partial
from typing import Any, Final

from broker_core.access import host_of
from broker_core.catalog import CatalogLister, KafkaAclReader, SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.kafka.acls import Operation, ResourceType, binding_text
from broker_core.pipeline import ListingTables, Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.settings import Settings

__all__ = ["explain_kafka"]

#: The most ACLs that are shown.
_MOST: Final = 50


async def explain_kafka(pipeline: Pipeline, settings: Settings, request: ListingRequest) -> dict[str, Any]:
    """All topics that the client of a request may see in its namespace, and the effect of ACLs.

    ``topics`` counts the shown topics, ``hidden_by_acls`` the topics hidden for want of ``DESCRIBE``, ``left_out`` the
    topics whose names Kafka cannot have. ``acls`` are the ACLs about topics that match the client.
    """
    assert settings.kafka is not None
    caller = Caller(asker=request.asker, namespace=request.namespace, deadline=request.deadline)
    with ExitStack() as stack:
        reader = None
        if settings.upstream is None:
            catalog = stack.enter_context(SqliteCatalog(settings.catalog.path, create=False))
            reader = stack.enter_context(closing(KafkaAclReader(catalog)))
        authorizer = Authorizer(settings.kafka, reader)
        found: dict[str, Any] = {"principal": caller.principal, "host": host_of(request.asker.remote_address)}
        try:
            await authorizer.refresh(caller)
            visible = await ListedTopics(pipeline, Authorizer(), _tables(pipeline)).of(caller)
        except ListingFailed as failure:
            return found | {"error": failure.message}
        shown = visible.allowed(partial(authorizer.chunk_mask, caller, Operation.DESCRIBE))
        acls = [row for row in authorizer.matching(caller) if row.resource_type is ResourceType.TOPIC]
        return found | {
            "authorizer": "on" if authorizer.enabled else "off",
            "super_user": caller.principal in settings.kafka.super_users,
            "topics": shown.count,
            "hidden_by_acls": visible.count - shown.count,
            "left_out": visible.table.left_out,
            "acls": [binding_text(row) for row in acls[:_MOST]],
        }


def _tables(pipeline: Pipeline) -> ListingTables | None:
    return pipeline.lister.topic_tables() if isinstance(pipeline.lister, CatalogLister) else None
