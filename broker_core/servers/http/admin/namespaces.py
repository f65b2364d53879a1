"""Tenants, namespaces and their policies for `pulsar-admin`, of the catalogue and of a Kafka cluster.

A client sees the namespaces that have a topic and that it may list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import web

from broker_core.catalog import reading_catalog
from broker_core.compact_json import ascii_text
from broker_core.concurrency import EACH_ROW
from broker_core.names import NamespaceName
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import HeldAnswer
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.namespaces.list_namespaces import every_namespace
from broker_core.servers.http.api.operation import Body, HttpOperation
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices, needs_changes
from broker_core.service import right_to

__all__ = ["is_known", "missing_namespace", "operations"]

#: The policies of a namespace as tools read them: as a broker gives them for a new namespace. None of them can be set
#: here: this server keeps and serves no messages.
_POLICIES: Final[Mapping[str, Any]] = {
    "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
    "replication_clusters": ["standalone"],  # the cluster that a standalone broker calls itself
    "allowed_clusters": [],
    "bundles": {"boundaries": ["0x00000000", "0xffffffff"], "numBundles": 1},
    "backlog_quota_map": {},
    "clusterDispatchRate": {},
    "topicDispatchRate": {},
    "subscriptionDispatchRate": {},
    "replicatorDispatchRate": {},
    "clusterSubscribeRate": {},
    "publishMaxMessageRate": {},
    "latency_stats_sample_rate": {},
    "deleted": False,
    "encryption_required": False,
    "subscription_auth_mode": "None",
    "offload_threshold": -1,
    "offload_threshold_in_seconds": -1,
    "schema_compatibility_strategy": "UNDEFINED",
    "is_allow_auto_update_schema": True,
    "schema_validation_enforced": False,
    "subscription_types_enabled": [],
    "properties": {},
    "migrated": False,
}
#: How many copies of the names are in memory at once: each alone, which takes some more, and joined.
_COPIES: Final = 4
#: The body of the tool's request to create a namespace. It is not read.
_ANY_BODY: Final = Body({"application/json": {"type": "object"}}, 256 * 1024, required=False)


def operations() -> list[HttpOperation]:
    """The operations of this file."""
    namespace = f"{ADMIN}namespaces/{{tenant}}/{{namespace}}"
    return [
        declared("GET", f"{ADMIN}tenants", _tenants),
        declared("GET", f"{ADMIN}namespaces/{{tenant}}", _namespaces),
        declared("GET", namespace, _policies),
        declared("PUT", namespace, _no_such_write, body=_ANY_BODY, changes="create_namespace"),
        declared("DELETE", namespace, _no_such_write, body=_ANY_BODY, changes="delete_namespace"),
    ]


async def is_known(services: ApiServices, namespace: NamespaceName) -> bool:
    """Whether a namespace exists: it has, or ever had, a topic in the catalogue, or is that of a Kafka cluster. Before
    a cluster of Pulsar that is unknown.
    """
    catalog = services.catalog
    if catalog is None or namespace == services.kafka_namespace:
        return True
    with reading_catalog():
        return (await asyncio.to_thread(catalog.file.version, namespace)).number > 0


def missing_namespace() -> RequestRefused:
    """The error to raise for a missing namespace."""
    return refused(404, "Namespace does not exist")


async def _tenants(request: ApiRequest) -> web.StreamResponse:
    return await _listed(request, "")


async def _namespaces(request: ApiRequest) -> web.StreamResponse:
    return await _listed(request, request.http.match_info["tenant"])


async def _listed(request: ApiRequest, tenant: str) -> web.StreamResponse:
    """All tenants, or the namespaces of one; permits cover the names until the client has read them."""
    items: list[bytes] = []
    size, last = 0, ""
    async with HeldAnswer(request) as held:
        async for namespaces in every_namespace(request, f"{tenant}/" if tenant else ""):
            for namespace in namespaces:
                name = str(namespace) if tenant else namespace.tenant
                if name != last:
                    items.append(ascii_text(name).encode())
                    size += len(items[-1])
                    last = name
            await held.hold(_COPIES * size)
        if tenant and not items:
            raise refused(404, "Tenant not found")
        return await held.write(lambda: b"[%s]\n" % b",".join(items), EACH_ROW * len(items))


async def _policies(request: ApiRequest) -> web.StreamResponse:
    await request.authorize("list")
    needs_changes(request.services, request.namespace())
    if not await is_known(request.services, request.namespace()):
        raise missing_namespace()
    return json_response(200, _POLICIES)


async def _no_such_write(request: ApiRequest) -> web.StreamResponse:
    assert request.attempt.action is not None  # it is declared
    await request.authorize(right_to(request.attempt.action))
    needs_changes(request.services, request.namespace())
    raise refused(
        501,
        "A namespace is there with its first topic: create a topic, or delete its topics",
    )
