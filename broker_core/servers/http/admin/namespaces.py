"""Tenants, namespaces and their policies, as `pulsar-admin` asks for them: of the embedded catalogue, and of a Kafka
cluster.

A client sees the namespaces that have a topic and that it may list.
"""

from __future__ import annotations

from typing import Final

from aiohttp import web

from broker_core.catalog import reading_catalog
from broker_core.names import NamespaceName
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.admin.policies import POLICIES
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.namespaces.list_namespaces import allowed_namespaces
from broker_core.servers.http.api.operation import Body, Operation
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.services import ApiServices, needs_catalog, needs_changes
from broker_core.servers.http.json_responses import json_response
from broker_core.service import right_to

__all__ = ["is_known", "missing_namespace", "operations"]


#: The body of the tool's request to create a namespace. It is not read.
_POLICIES: Final = Body({"application/json": {"type": "object"}}, 256 * 1024, required=False)


def operations() -> list[Operation]:
    """The operations of this file."""
    namespace = f"{ADMIN}namespaces/{{tenant}}/{{namespace}}"
    return [
        declared("GET", f"{ADMIN}tenants", _tenants),
        declared("GET", f"{ADMIN}namespaces/{{tenant}}", _namespaces),
        declared("GET", namespace, _policies),
        declared("PUT", namespace, _no_such_write, body=_POLICIES, changes="create_namespace"),
        declared("DELETE", namespace, _no_such_write, body=_POLICIES, changes="delete_namespace"),
    ]


async def is_known(services: ApiServices, namespace: NamespaceName) -> bool:
    """Whether a namespace exists: it has, or ever had, a topic in the catalogue, or is that of a Kafka cluster. Before
    a cluster of Pulsar that is unknown.
    """
    catalog = services.catalog
    if catalog is None or namespace == services.kafka_namespace:
        return True
    with reading_catalog():
        return (await catalog.version(namespace)).number > 0


def missing_namespace() -> RequestRefused:
    """The error to raise for a missing namespace."""
    return refused(404, "Namespace does not exist")


async def _tenants(request: ApiRequest) -> web.StreamResponse:
    found = await _visible(request, "")
    return json_response(200, list(dict.fromkeys(namespace.tenant for namespace in found)))


async def _namespaces(request: ApiRequest) -> web.StreamResponse:
    found = await _visible(request, request.http.match_info["tenant"] + "/")
    if not found:
        raise refused(404, "Tenant not found")
    return json_response(200, [str(namespace) for namespace in found])


async def _policies(request: ApiRequest) -> web.StreamResponse:
    await request.authorize("list")
    needs_changes(request.services, request.namespace())
    if not await is_known(request.services, request.namespace()):
        raise missing_namespace()
    return json_response(200, POLICIES)


async def _no_such_write(request: ApiRequest) -> web.StreamResponse:
    assert request.attempt.action is not None  # it is declared
    await request.authorize(right_to(request.attempt.action))
    needs_changes(request.services, request.namespace())
    raise refused(
        501,
        "A namespace is there with its first topic: create a topic, or delete its topics",
    )


async def _visible(request: ApiRequest, prefix: str) -> list[NamespaceName]:
    """The namespaces that begin with this, and that the client may list."""
    catalog, of_kafka = needs_catalog(request.services), request.services.kafka_namespace
    with reading_catalog():
        found = {*map(str, await catalog.namespaces())}
    if of_kafka is not None:
        found.add(str(of_kafka))
    names = sorted(name for name in found if name.startswith(prefix))
    return await allowed_namespaces(request, names, len(names))
