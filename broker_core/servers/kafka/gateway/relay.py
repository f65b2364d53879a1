"""A request of a client, asked of a node of the cluster; rows that name nodes, and the rows of several nodes as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from broker_core.client import ClientError, ConnectionLost
from broker_core.client.kafka import LARGE_ANSWER, Cluster, KafkaException, NotControllerException, ReadAnswer
from broker_core.memory import SMALL_ANSWER, Permit
from broker_core.servers.kafka.cluster.cluster_front import ClusterFront
from broker_core.servers.kafka.gateway.hidden_topics import DECODED
from broker_core.servers.kafka.pages.answer_page import without_page
from broker_core.servers.kafka.pages.page_shapes import shape_of
from broker_core.servers.kafka.pages.raw_units import raw_path, requested_path
from broker_core.servers.kafka.requests.call import CloseClient, KafkaCall, or_close
from broker_core.servers.kafka.requests.config_resource_types import ConfigResourceType, broker_id
from broker_core.servers.kafka.row_error import RowError, error_row
from broker_core.upstream.kafka import ANY, CONTROLLER, AnswerLost, Coordinator, Target
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    METADATA,
    Api,
    Encoded,
    EncodedRows,
    ErrorCode,
    Fields,
    RawPath,
    RawRows,
    Reader,
    read_raw_request,
    read_raw_response,
    read_response,
    response_frame,
)

__all__ = [
    "Joined",
    "Refused",
    "ask",
    "ask_node",
    "beside",
    "by_controller",
    "by_their_nodes",
    "coordinator",
    "front_of",
    "gone_or_refused",
    "joined",
    "lost_nodes",
    "nodes_now",
    "part_of",
    "reader_of_rows",
    "with_nodes",
    "without_lost",
]

#: Makes the answer to a refused request from its error.
Refused: TypeAlias = Callable[[KafkaCall, RowError], Fields]

#: Bytes of memory for each byte of a large answer while the places of its rows are found, which stay bytes.
_AS_BYTES: Final = 2
#: Bytes of the length in front of a message.
_LENGTH: Final = 4
#: Milliseconds that a node may take for a change, so that its own answer comes in time.
_MOST_MS: Final = 15_000
#: Seconds to wait for a controller, within the deadline of a call.
_MOST_SECONDS: Final = 18.0
#: Types of resources of configs that are of one node.
_OF_NODES: Final = frozenset({ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER})
#: APIs whose answers name topics, which are noted.
_LOOKED_AT: Final = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})
#: APIs whose answers name topics inside their rows, some of which may be hidden.
_LOOKED_INTO: Final = frozenset({CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, DESCRIBE_TRANSACTIONS})


def front_of(call: KafkaCall) -> ClusterFront:
    """The cluster that a call is for."""
    front = call.services.front
    assert front is not None
    return front


async def ask(
    call: KafkaCall,
    api: Api,
    body: Fields | None = None,
    *,
    target: Target = ANY,
    again: bool = True,
) -> Fields:
    """The answer of the node at whose port the client is, or else of ``target``, to a request of the call's version.

    ``again`` false: it is asked once, before a change. Raises :exc:`~..call.CloseClient` if it does not answer: the
    client sees the same as with a node that is gone.
    """
    node = call.node.of_cluster
    with or_close():
        return await ask_node(call, api, target if node is None else node, body, again=again)


async def by_controller(
    call: KafkaCall,
    api: Api,
    refused: Refused,
    *,
    target: Target = CONTROLLER,
    again: bool = False,
    gone: ErrorCode = ErrorCode.NOT_CONTROLLER,
) -> Fields:
    """The answer to a request that a cluster's controller decides, whatever node hands it on; or another ``target``.

    ``refused`` makes the answer if it does not answer: with the code ``gone`` for a new attempt if it was not asked,
    and else with the one for an unknown outcome. Raises :exc:`~..call.CloseClient` if the client is not let in, and if
    the node at whose port the client is cannot be asked.
    """
    node = call.node.of_cluster
    try:
        async with asyncio.timeout(_MOST_SECONDS):
            return await ask_node(call, api, target if node is None else node, again=again)
    except (AnswerLost, TimeoutError):
        code = ErrorCode.REQUEST_TIMED_OUT
    except NotControllerException:
        code = ErrorCode.NOT_CONTROLLER
    except ClientError as failed:
        if node is not None or not isinstance(failed, ConnectionLost):
            raise CloseClient(str(failed)) from failed
        code = gone
    return refused(call, error_row(code))


async def ask_node(
    call: KafkaCall, api: Api, target: Target, body: Fields | None = None, *, again: bool = True
) -> Fields:
    """The answer of ``target``. Raises :exc:`~broker_core.client.ClientError`."""
    front = front_of(call)
    request = without_page(call.body if body is None else body)  # pages are made here
    if api is DESCRIBE_TOPIC_PARTITIONS and call.page is not None:
        request |= call.page.for_node({row["name"] for row in request["topics"]})
    if "timeout_ms" in request:
        request["timeout_ms"] = min(request["timeout_ms"], _MOST_MS)

    path, read = _passed_on(call, api), _reader(call, api)
    held: list[Permit] = []

    async def hold(size: int) -> None:
        held.append(await call.hold(size * (DECODED if path is None else _AS_BYTES)))

    answer = await front.cluster.request(
        target,
        api,
        call.version,
        request,
        front.identity(call.asker),
        again=again,
        hold=hold,
        read=read,
    )
    rows = None if path is None else answer[path[0][0]]
    if isinstance(rows, RawRows):
        for permit in held:  # while a client reads slowly, others have the rest
            permit.budget.split(permit, max(permit.count - rows.nbytes, 0)).release()
        if SMALL_ANSWER < len(rows.data) <= LARGE_ANSWER:
            await call.hold(len(rows.data))
    return answer


async def part_of(
    call: KafkaCall,
    api: Api,
    node: int | Coordinator | None,
    body: Fields | None,
    gone: Callable[[KafkaCall], Fields],
    *,
    again: bool = True,
) -> Fields:
    """The part of an answer from a node, ``None``: from the one at whose port the client is, or else from any.

    ``gone`` makes the part if none answers; the end of the node of a port is that of its clients. Raises
    :exc:`~..call.CloseClient` then, and if the client is not let in.
    """
    if node is None and call.node.of_cluster is not None:
        return await ask(call, api, body, again=again)
    try:
        return await ask_node(call, api, ANY if node is None else node, body, again=again)
    except ClientError as failed:
        fields = gone_or_refused(failed, call if body is None else replace(call, body=body), gone)
    # As bytes, if the other nodes' parts stay bytes.
    message = b"".join(response_frame(api, call.version, 0, fields))[_LENGTH:]
    return _reader(call, api)(api, call.version, message)[1]


def gone_or_refused(failed: ClientError, call: KafkaCall, gone: Callable[[KafkaCall], Fields]) -> Fields:
    """The answer of ``gone`` if no node has answered. Raises :exc:`~..call.CloseClient` if one refuses the client."""
    if isinstance(failed, KafkaException):
        raise CloseClient(str(failed)) from failed
    return gone(call)


async def beside(parts: Iterable[Coroutine[Any, Any, Fields]]) -> list[Fields]:
    """Parts of an answer, asked for at the same time; the first error once all have ended."""
    found = await asyncio.gather(*parts, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return [each for each in found if not isinstance(each, BaseException)]


class Joined(NamedTuple):
    """The rows of several answers as bytes, and the name of each."""

    rows: RawRows
    names: Sequence[Hashable]

    def in_order(self, wanted: Iterable[Hashable], others: Mapping[Hashable, Encoded]) -> EncodedRows:
        """The rows with the wanted names, or their rows in ``others``, each as often as it is wanted."""
        places: dict[Hashable, list[int]] = {}
        for place, name in reversed([*enumerate(self.names)]):
            places.setdefault(name, []).append(place)
        some = [
            others[name] if name in others else self.rows.one(places[name].pop())
            for name in wanted
            if name in others or places.get(name)
        ]
        return self.rows.mixed(some)


async def joined(
    call: KafkaCall, parts: Sequence[Any], names: Callable[[RawRows], Sequence[Hashable]]
) -> Joined | None:
    """The rows of answers, if all of them are bytes; ``names`` gives the names of rows."""
    if not parts or not all(isinstance(each, RawRows) for each in parts):
        return None

    def join() -> Joined:
        rows = parts[0] if len(parts) == 1 else RawRows.joined(parts)
        return Joined(rows, names(rows))

    return await call.off_loop(sum(map(len, parts)), join)


def _passed_on(call: KafkaCall, api: Api) -> RawPath | None:
    """The rows of an answer that stay bytes; not of topics, of which the gateway knows something itself."""
    if api in _LOOKED_AT or shape_of(api, api.versions.last) is None:
        return None
    return None if api in _LOOKED_INTO and call.may_hide_topics else raw_path(api, call.version)


def _reader(call: KafkaCall, api: Api) -> ReadAnswer:
    path = _passed_on(call, api)
    return read_response if path is None else partial(read_raw_response, path)


def reader_of_rows(api: Api) -> Callable[[Reader, int], Fields] | None:
    """A reader of requests whose rows stay bytes, so that a node is asked for slices of them."""
    if shape_of(api, api.versions.last) is None:
        return None

    def read(reader: Reader, version: int) -> Fields:
        path = requested_path(api, version)
        if path is None:
            return api.read_request(reader, version)
        return read_raw_request(path, api, reader, version)

    return read


async def with_nodes(call: KafkaCall, answer: Fields) -> Fields:
    """A node's answer about nodes, with those that have a port of this gateway, at it.

    A fenced node is without a port: nobody can reach it. One for which there is no port is left out, as one that is
    down is; if it is the controller, another node stands for it, which hands requests on to it.
    """
    front = front_of(call)
    rows = answer["brokers"]
    key = "node_id" if rows and "node_id" in rows[0] else "broker_id"
    await front.cluster.name([row[key] for row in rows if not row.get("is_fenced")])
    shown: list[Fields] = []
    for row in rows:
        address = front.ports.address(row[key], tls=call.node.tls)
        if row.get("is_fenced"):
            shown.append(row | {"host": call.node.host, "port": -1})
        elif address is not None:
            shown.append(row | {"host": address[0], "port": address[1]})
    found = answer | {"brokers": shown}
    ids = [row[key] for row in shown if row["port"] >= 0]
    if answer.get("controller_id", -1) >= 0 and answer["controller_id"] not in ids:
        found["controller_id"] = ids[0] if ids else -1
    return found


def lost_nodes(call: KafkaCall) -> frozenset[int]:
    """The nodes that the client cannot reach, since there is no port for them."""
    return frozenset(front_of(call).ports.without(tls=call.node.tls))


def without_lost(call: KafkaCall, rows: list[Fields]) -> list[Fields]:
    """A node's rows of topics, with nodes without a port shown as nodes that are down."""
    lost = lost_nodes(call)
    if not lost:
        return rows
    return [row | {"partitions": [_without(part, lost) for part in row["partitions"]]} for row in rows]


def _without(part: Fields, lost: frozenset[int]) -> Fields:
    offline = part["offline_replicas"]
    new = [node for node in part["replica_nodes"] if node in lost and node not in offline]
    found = part | {"offline_replicas": [*offline, *new]}
    if part["leader_id"] in lost:
        found |= {"error_code": ErrorCode.LEADER_NOT_AVAILABLE, "leader_id": -1}
    return found


async def nodes_now(call: KafkaCall) -> Cluster:
    """The current nodes, as one of them gives them. Raises :exc:`~..call.CloseClient`."""
    with or_close():
        return await front_of(call).cluster.refresh()


async def by_their_nodes(call: KafkaCall, rows: Sequence[Fields]) -> dict[int | None, list[Fields]]:
    """Resources of configs by the node that has them; ``None``: any, which has an error for an unknown node."""
    front, nodes = front_of(call), [*map(partial(_node_of_resource, call), rows)]
    if not {*nodes} - {None} <= {*front.node_ids}:  # one may have come just now
        with suppress(ClientError):
            await front.cluster.refresh()
    known = {*front.node_ids}
    found: dict[int | None, list[Fields]] = {}
    for node, row in zip(nodes, rows, strict=True):
        found.setdefault(node if node in known else None, []).append(row)
    return found


def _node_of_resource(call: KafkaCall, row: Fields) -> int | None:
    is_here = call.node.of_cluster is not None or row["resource_type"] not in _OF_NODES
    return None if is_here else broker_id(row["resource_name"])


async def coordinator(call: KafkaCall, row: Fields) -> Fields:
    """A row that names the coordinator of something, at its port of this gateway."""
    if row["error_code"]:
        return row | {"host": "", "port": -1}
    front = front_of(call)
    address = front.ports.address(row["node_id"], tls=call.node.tls)
    if address is None:  # it may have come just now
        await front.cluster.name([row["node_id"]])
        address = front.ports.address(row["node_id"], tls=call.node.tls)
    if address is None:
        gone = {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE, "node_id": -1, "host": "", "port": -1}
        return row | gone
    return row | {"host": address[0], "port": address[1]}
