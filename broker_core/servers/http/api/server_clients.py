"""The connected clients of all protocols: their identities and requests, and closing their connections."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from aiohttp import web

from broker_core.access import OPERATOR, Client, ClientFilter
from broker_core.errors import Cause
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.bounded_answer import shown_first
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right, Schema
from broker_core.servers.http.api.parameters import limit_parameter, one_of
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import fields_text

__all__ = ["operations"]

#: Clients that are looked at in one turn of the event loop.
_AT_ONCE: Final = 200
#: Requests under way, and namespaces, that are shown of one client.
_MOST_SHOWN: Final = 20

#: The numbers of each order; the largest is first.
_ORDERS: Final[Mapping[str, Callable[[Client], float]]] = {
    "age": lambda client: client.age,
    "requests": lambda client: client.rates()[0],
    "bytes": lambda client: client.rates()[1],
    "memory": lambda client: client.memory,
}
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#: An address, with its port or as a network; IPv6 addresses have no pattern.
_IPV4: Final = rf"^{_OCTET}(\.{_OCTET}){{3}}(:[0-9]{{1,5}}|/([12]?[0-9]|3[0-2]))?$"
_TEXT: Final[Schema] = {"type": "string"}
_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_COUNT: Final[Schema] = {"type": "integer"}
_NUMBER: Final[Schema] = {"type": "number"}
_ASKS: Final[Schema] = {
    "type": "object",
    "required": ["operation", "namespace", "seconds"],
    "properties": {"operation": _TEXT, "namespace": _TEXT, "seconds": _NUMBER},
}
_PROPERTIES: Final[Schema] = {
    "transport": {"type": "string", "enum": ["pulsar", "kafka", "http"]},
    "address": _TEXT,
    "role": _OR_NULL,
    "original_principal": {**_OR_NULL, "description": "The role that the proxy of the client asks for."},
    "client_version": {**_TEXT, "description": "What the client says that it is."},
    "age_seconds": _NUMBER,
    "asks": {"type": "array", "items": _ASKS, "description": "The requests under way, 20 at most."},
    "under_way": {**_COUNT, "description": "How many these are in all."},
    "namespaces": {
        "type": "array",
        "items": _TEXT,
        "description": "Where it asked within a minute, the latest first, 20 at most.",
    },
    "memory_bytes": {**_COUNT, "description": "Permits of its requests, and buffers of its connection."},
    "requests_per_second": {**_NUMBER, "description": "Of about the last minute."},
    "bytes_per_second": {**_NUMBER, "description": "Bytes of answers, of about the last minute."},
}
_CLIENT: Final[Schema] = {"type": "object", "required": [*_PROPERTIES], "properties": _PROPERTIES}
_LIST: Final[Schema] = {
    "type": "object",
    "required": ["items", "total"],
    "properties": {
        "items": {"type": "array", "items": _CLIENT},
        "total": {"type": "integer", "description": "How many clients are meant, shown or not."},
    },
}
_DISCONNECTED: Final[Schema] = {
    "type": "object",
    "required": ["disconnected"],
    "properties": {"disconnected": _COUNT},
}
_EXAMPLE: Final = {
    "transport": "pulsar",
    "address": "192.0.2.7:53211",
    "role": "team-a",
    "original_principal": None,
    "client_version": "Pulsar-Java-v4.2.4",
    "age_seconds": 3600.5,
    "asks": [{"operation": "GET_TOPICS_OF_NAMESPACE", "namespace": "acme/orders", "seconds": 0.012}],
    "under_way": 1,
    "namespaces": ["acme/orders"],
    "memory_bytes": 10240,
    "requests_per_second": 0.5,
    "bytes_per_second": 2048.0,
}


def _part_of_filter(name: str) -> Callable[[str], str]:
    """Reads a part of :class:`~broker_core.access.clients.ClientFilter`, which raises :exc:`ValueError`."""

    def read(text: str) -> str:
        ClientFilter(**{name: text})
        return text

    return read


_WHICH: Final = (
    Parameter(
        "role",
        "Clients of this role, or whose proxy asks for it; * stands for any text.",
        read=_part_of_filter("role"),
        schema={"type": "string", "minLength": 1},
        example="team-*",
    ),
    Parameter(
        "address",
        "Clients at this HOST or HOST:PORT, or of a network.",
        read=_part_of_filter("address"),
        schema={"type": "string", "anyOf": [{"pattern": _IPV4}, {"format": "ipv6"}]},
        example="192.0.2.0/24",
    ),
    Parameter(
        "namespace",
        "Clients that asked in this namespace within a minute; * stands for any text.",
        read=_part_of_filter("namespace"),
        schema={"type": "string", "pattern": "[/*]"},
        example="acme/*",
    ),
)


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    return [
        HttpOperation(
            "GET",
            "/v1/server/clients",
            "listClients",
            "The clients that are connected, over all protocols.",
            Right.MONITOR_EVERYWHERE,
            _list,
            {
                200: Reply(
                    "The clients that are meant; without a filter, all.",
                    {"application/json": _LIST},
                    examples={"application/json": {"items": [_EXAMPLE], "total": 1}},
                )
            },
            tag="server",
            parameters=(
                *_WHICH,
                Parameter(
                    "order",
                    "Which of them are first: the oldest, or those with the most requests, bytes or memory.",
                    read=one_of(_ORDERS),
                    schema={"type": "string", "enum": [*_ORDERS], "default": "age"},
                    default="age",
                ),
                limit_parameter("The clients that are shown at the most."),
            ),
        ),
        HttpOperation(
            "POST",
            "/v1/server/clients/disconnect",
            "disconnectClients",
            "Close the connections of clients, which may connect again.",
            Right.ADMIN_EVERYWHERE,
            _disconnect,
            {
                200: Reply(
                    "How many connections were closed; never that of the request itself.",
                    {"application/json": _DISCONNECTED},
                    examples={"application/json": {"disconnected": 1}},
                )
            },
            description="One of the parameters is needed at least. If no rights are required, only the "
            "operator's socket may do it.",
            tag="server",
            parameters=_WHICH,
            changes="disconnect_clients",
        ),
    ]


async def _list(request: ApiRequest) -> web.StreamResponse:
    order, limit = _ORDERS[request.values["order"]], request.values["limit"]
    first: list[tuple[float, int, Client]] = []
    total = 0
    async for client in _meant(request):
        total += 1
        each = order(client), -total, client
        if len(first) < limit:
            heapq.heappush(first, each)
        else:
            heapq.heappushpop(first, each)
    shown: list[dict[str, Any]] = []
    for _, number, client in sorted(first, reverse=True):
        shown.append(_shown(client))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return await shown_first(request, {"items": [], "total": total}, shown)


async def _disconnect(request: ApiRequest) -> web.StreamResponse:
    asker = request.asker
    if asker.transport != OPERATOR and not request.services.pipeline.authorization.on:
        raise refused(
            403,
            "nobody needs a right for anything here: clients are disconnected by the operator's socket alone",
            Cause.NOT_ALLOWED,
        )
    given = {
        name: value
        for name in ("role", "address", "namespace")
        if (value := request.values[name]) is not None
    }
    if not _filter(request).is_given:
        raise refused(400, "say which clients: role, address or namespace")
    request.attempt.target = fields_text(given)
    ended = 0
    async for client in _meant(request):
        if client is not asker.connection:
            client.end()
            ended += 1
    request.attempt.fields = {"disconnected": ended}
    return json_response(200, {"disconnected": ended})


async def _meant(request: ApiRequest) -> AsyncIterator[Client]:
    """The clients that a request means; the loop serves others meanwhile."""
    is_meant = _filter(request)
    for number, client in enumerate(request.services.clients, 1):
        if is_meant(client):
            yield client
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)


def _filter(request: ApiRequest) -> ClientFilter:
    values = request.values
    return ClientFilter(values["role"], values["address"], values["namespace"])


def _shown(client: Client) -> dict[str, Any]:
    requests, sent = client.rates()
    age, under_way = client.age, [*client.under_way.values()]
    now = client.since + age
    return {
        "transport": client.transport,
        "address": client.address,
        "role": client.role,
        "original_principal": client.original_principal,
        "client_version": client.client_version,
        "age_seconds": round(age, 3),
        "asks": [
            {"operation": each.operation, "namespace": each.namespace, "seconds": round(now - each.since, 3)}
            for each in under_way[:_MOST_SHOWN]
        ],
        "under_way": len(under_way),
        "namespaces": client.namespaces()[:_MOST_SHOWN],
        "memory_bytes": client.memory,
        "requests_per_second": round(requests, 3),
        "bytes_per_second": round(sent, 1),
    }
