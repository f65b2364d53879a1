"""Requests that change nothing in a cluster: relayed to the node of a port, or to the node that has the answer.

The listener's own port is no node's. There groups and transactions are of all nodes, and a request for things that one
node keeps goes to that node; log directories are asked for at the ports of nodes alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from broker_core.client import ClientError
from broker_core.client.kafka import Cluster
from broker_core.kafka import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from broker_core.servers.kafka.apis.offset_fetch import refused_offsets
from broker_core.servers.kafka.gateway.hidden_topics import (
    guarded,
    hidden,
    left_out,
    topics_of_member,
    without_hidden,
    without_hidden_resources,
)
from broker_core.servers.kafka.gateway.leaders import by_leader
from broker_core.servers.kafka.gateway.relay import (
    Refused,
    ask,
    beside,
    by_controller,
    by_their_nodes,
    front_of,
    gone_or_refused,
    joined,
    part_of,
    reader_of_rows,
)
from broker_core.servers.kafka.gateway.shared_listings import of_pass
from broker_core.servers.kafka.pages.page_rows import refusal_of
from broker_core.servers.kafka.pages.page_shapes import arrays_of
from broker_core.servers.kafka.requests.call import AnswerLater, CloseClient, HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.config_resource_types import ConfigResourceType, is_known
from broker_core.servers.kafka.row_error import RowError, error_row
from broker_core.upstream.kafka import ANY, Coordinator
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    LIST_CONFIG_RESOURCES,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Encoded,
    EncodedRows,
    ErrorCode,
    Fields,
)

__all__ = ["READ_ROWS", "Kept", "by_coordinator", "key_of_resource", "of_one_group"]

_OF_GROUPS: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_OF_TRANSACTIONS: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_OF_CLUSTER: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
_SEVERAL: Final = 8


def _refused(api: Api, call: KafkaCall, error: RowError) -> Fields:
    """The answer to a client without the right."""
    if api not in _PAGED:
        return error.fields_of(api.response)
    if api is OFFSET_FETCH and call.version < _SEVERAL and not api.response.has("error_code", call.version):
        return refused_offsets(call.body, error.code)
    shape = arrays_of(api, call.version)
    answer = refusal_of(api, shape, call.body, error.code, error.message or "")
    if api.response.has("error_code", call.version):
        answer["error_code"] = error.code
    return answer


def _gone(refused: Refused, code: ErrorCode, call: KafkaCall) -> Fields:
    """The part of a node that does not answer: rows with a code that clients try again."""
    return refused(call, RowError(code, "The node does not answer."))


async def _merged(api: Api, array: str, key: str, keeper: str, call: KafkaCall) -> Fields:
    """The joined answer of all nodes, at the listener's own port: an error if one of them has none.

    The leaders of the partitions of the topic ``keeper`` keep the things: those of one without leader no node lists.
    """
    if call.node.of_cluster is not None:
        return await ask(call, api)
    gone = {"error_code": ErrorCode.COORDINATOR_NOT_AVAILABLE, array: []}
    cluster = front_of(call).cluster
    body = {"topics": [{"name": keeper}], "allow_auto_topic_creation": False}
    try:
        metadata = await cluster.request(ANY, METADATA, None, body)  # few clients may see this topic
    except ClientError as failed:
        return gone_or_refused(failed, call, lambda _: gone)
    if any(part["leader_id"] < 0 for row in metadata["topics"] for part in row["partitions"]):
        return gone
    nodes = Cluster.of_metadata(metadata).nodes
    await cluster.name(nodes)
    found = await beside(part_of(call, api, node, None, lambda _: gone) for node in nodes)
    for each in found:
        if each["error_code"]:
            return each | {array: []}
    if not found:
        raise CloseClient("the cluster has no nodes")
    parts = [each[array] for each in found]
    raw = await joined(call, parts, lambda rows: rows.texts(key))
    if raw is not None and len(set(raw.names)) == len(raw.names):
        return found[0] | {array: raw.rows}
    # A thing that has just moved from one node to another may be in both answers.
    rows: dict[str, Fields] = {}
    for row in chain.from_iterable(parts):
        rows.setdefault(row[key], row)
    return found[0] | {array: list(rows.values())}


class Kept(NamedTuple):
    """The things that are kept by one node each: the array that names them in a request, the field of their names in
    its elements (``""``: the element itself), the array of the answer and the field there, and the kind of coordinator.
    """

    requested: str
    key: str
    answered: str
    name: str
    kind: int = 0

    def name_of(self, thing: Any) -> str:
        name: str = thing[self.key] if self.key else thing
        return name


async def by_coordinator(
    api: Api, kept: Kept, call: KafkaCall, *, refused: Refused | None = None, again: bool = True
) -> Fields:
    """A handler of requests about several things: at the listener's own port each node is asked for its own things.

    ``refused`` makes the part of a node that does not answer.
    """
    refused = refused or partial(_refused, api)
    gone = partial(_gone, refused, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    things = call.body.get(kept.requested)
    if call.node.of_cluster is not None or not things:
        return await ask(call, api, again=again)
    names = [kept.name_of(thing) for thing in things]
    front = front_of(call)
    try:
        keepers = await front.cluster.coordinators(names, kept.kind, front.identity(call.asker))
    except ClientError as failed:
        return gone_or_refused(failed, call, gone)
    nodes: dict[int | None, list[Any]] = {}
    for name, thing in zip(names, things, strict=True):
        nodes.setdefault(keepers.get(name), []).append(thing)
    # Any node has an error for a thing that no node keeps.
    parts = await beside(
        part_of(call, api, node, {**call.body, kept.requested: some}, gone, again=again)
        for node, some in nodes.items()
    )
    if len(parts) == 1:
        return parts[0]
    places: dict[Hashable, int] = {name: place for place, name in reversed(list(enumerate(names)))}
    raw = await joined(call, [part[kept.answered] for part in parts], lambda rows: rows.texts(kept.name))
    if raw is not None:
        if call.page is not None:  # it has an order of its own
            return parts[0] | {kept.answered: raw.rows}
        at = [places.get(name, 0) for name in raw.names]
        order = sorted(range(len(at)), key=at.__getitem__)
        return parts[0] | {kept.answered: raw.rows.ordered(order)}
    rows: list[Fields] = [row for part in parts for row in part[kept.answered]]
    rows.sort(key=lambda row: places.get(row[kept.name], 0))
    return parts[0] | {kept.answered: rows}


async def of_one_group(api: Api, refused: Refused, call: KafkaCall, *, again: bool = True) -> Fields:
    """A handler of requests about one group, whose coordinator is asked at the listener's own port.

    ``refused`` makes the answer if the coordinator does not answer.
    """
    gone = partial(_gone, refused, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    keeper = None if call.node.of_cluster is not None else Coordinator(call.body["group_id"])
    return await part_of(call, api, keeper, None, gone, again=again)


async def _offsets(call: KafkaCall) -> Fields:
    """OffsetFetch, which before version 8 is for one group alone."""
    if call.version >= _SEVERAL:
        return await by_coordinator(OFFSET_FETCH, _OFFSETS, call)
    return await of_one_group(OFFSET_FETCH, partial(_refused, OFFSET_FETCH), call)


async def _log_dirs(call: KafkaCall) -> Fields:
    if call.node.of_cluster is None:
        text = "directories are those of a node: ask at its own port"
        return _refused(DESCRIBE_LOG_DIRS, call, RowError(ErrorCode.INVALID_REQUEST, text))
    return await ask(call, DESCRIBE_LOG_DIRS)


async def _configs(call: KafkaCall) -> Fields:
    """Configs of a node, asked of it, at the listener's own port."""
    if call.node.of_cluster is not None and not call.may_hide_topics:
        return await ask(call, DESCRIBE_CONFIGS)
    resources = call.body["resources"]
    if not all(is_known(row["resource_type"]) for row in resources):
        # A node fails at such a number, and with it the whole request: neither others nor masks show any row then.
        return _refused(DESCRIBE_CONFIGS, call, error_row(ErrorCode.INVALID_REQUEST))
    names = [row["resource_name"] for row in resources if row["resource_type"] == ConfigResourceType.TOPIC]
    gone = await hidden(call, names, rules="list")
    refused: dict[tuple[int, str], Fields] = {
        (ConfigResourceType.TOPIC, name): {
            "resource_type": ConfigResourceType.TOPIC,
            "resource_name": name,
            "error_code": topic.error,
            "error_message": topic.message,
            "configs": [],
        }
        for name, topic in gone.items()
    }
    shown = [row for row in resources if key_of_resource(row) not in refused]
    nodes = await by_their_nodes(call, shown)
    gone_node = partial(_gone, partial(_refused, DESCRIBE_CONFIGS), ErrorCode.BROKER_NOT_AVAILABLE)
    parts = await beside(
        ask(call, DESCRIBE_CONFIGS, {**call.body, "resources": some})
        if node is None
        else part_of(call, DESCRIBE_CONFIGS, node, {**call.body, "resources": some}, gone_node)
        for node, some in nodes.items()
    )
    results = [part["results"] for part in parts]
    raw = await joined(
        call,
        results,
        lambda rows: [*zip(rows.bytes_of("resource_type"), rows.texts("resource_name"), strict=True)],
    )
    wanted = map(key_of_resource, resources)
    if raw is not None:
        elements = partial(DESCRIBE_CONFIGS.response_elements, "results", version=call.version)
        others: dict[Hashable, Encoded] = {name: elements([row]) for name, row in refused.items()}
        return parts[0] | {"results": raw.in_order(wanted, others)}
    found: dict[tuple[int, str], deque[Fields]] = {}
    for row in chain.from_iterable(results):
        found.setdefault(key_of_resource(row), deque()).append(row)
    rows = [
        refused[each] if each in refused else found[each].popleft()
        for each in wanted
        if each in refused or found.get(each)
    ]
    return (parts[0] if parts else {}) | {"results": rows}


def key_of_resource(row: Fields) -> tuple[int, str]:
    """The key of a resource of configs."""
    return row["resource_type"], row["resource_name"]


async def _transactions(call: KafkaCall) -> Fields:
    answer = await by_coordinator(DESCRIBE_TRANSACTIONS, _TRANSACTIONS, call)
    if not call.may_hide_topics:
        return answer
    rows = answer["transaction_states"]
    gone = await left_out(call, [topic["topic"] for row in rows for topic in row["topics"]])
    shown = [
        row | {"topics": [topic for topic in row["topics"] if topic["topic"] not in gone]} for row in rows
    ]
    return answer | {"transaction_states": shown}


async def _consumer_groups(call: KafkaCall) -> Fields:
    answer = await by_coordinator(CONSUMER_GROUP_DESCRIBE, _CONSUMER_GROUPS, call)
    if not call.may_hide_topics:
        return answer
    parts = ("assignment", "target_assignment")
    rows = answer["groups"]
    names = [
        topic["topic_name"]
        for row in rows
        for member in row["members"]
        for part in parts
        for topic in member[part]["topic_partitions"]
    ]
    names += [name for row in rows for member in row["members"] for name in member["subscribed_topic_names"]]
    gone = await left_out(call, names)
    if not gone:
        return answer
    for row in rows:
        for member in row["members"]:
            topics = member["subscribed_topic_names"]
            member["subscribed_topic_names"] = [name for name in topics if name not in gone]
            for part in parts:
                kept = [each for each in member[part]["topic_partitions"] if each["topic_name"] not in gone]
                member[part] = member[part] | {"topic_partitions": kept}
    return answer


async def _groups(call: KafkaCall) -> Fields:
    """Classic groups of consumers, whose members' bytes name topics: with a hidden one they are left out."""
    answer = await by_coordinator(DESCRIBE_GROUPS, _GROUPS, call)
    if not call.may_hide_topics:
        return answer
    members = [
        member
        for row in answer["groups"]
        if row["protocol_type"] in ("", "consumer")
        for member in row["members"]
    ]
    parts = (("member_metadata", False), ("member_assignment", True))
    named = {
        (place, name): topics_of_member(member[name], with_partitions=is_assignment)
        for place, member in enumerate(members)
        for name, is_assignment in parts
    }
    gone = await left_out(call, [topic for topics in named.values() for topic in topics or ()])
    for (place, name), topics in named.items():
        if topics is None or not gone.keys().isdisjoint(topics):
            members[place][name] = b""
    return answer


async def _reassignments(call: KafkaCall) -> Fields:
    """Reassignments, asked of any node: each hands the request on to the controller."""
    api = LIST_PARTITION_REASSIGNMENTS
    return await by_controller(call, api, partial(_refused, api), target=ANY, again=True)


def _relay(api: Api) -> AnswerLater:
    return partial(ask, api=api)


def _of_leaders(api: Api) -> AnswerLater:
    gone = partial(_gone, partial(_refused, api), ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return partial(without_hidden, api, partial(by_leader, api, gone))


def _for_operators(api: Api) -> HandlerRow:
    """A relay of requests that Kafka guards by rights on the cluster: a right to list topics is none to users and
    quotas.
    """
    found: AnswerLater = partial(of_pass, api, _relay(api))
    if api is DESCRIBE_ACLS:
        found = partial(without_hidden_resources, "resources", found, "create_acl")
    return HandlerRow(api, partial(guarded, found, _OF_CLUSTER, partial(_refused, api), "create_acl"))


_GROUPS: Final = Kept("groups", "", "groups", "group_id")
_CONSUMER_GROUPS: Final = Kept("group_ids", "", "groups", "group_id")
_OFFSETS: Final = Kept("groups", "group_id", "groups", "group_id")
_TRANSACTIONS: Final = Kept("transactional_ids", "", "transaction_states", "transactional_id", 1)

_PAGED: Final = frozenset(
    {
        CONSUMER_GROUP_DESCRIBE,
        DESCRIBE_CONFIGS,
        DESCRIBE_GROUPS,
        DESCRIBE_LOG_DIRS,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_OFFSETS,
        OFFSET_FETCH,
    }
)


def _row(api: Api, later: AnswerLater, code: ErrorCode | None = None) -> HandlerRow:
    later = partial(_of_decoded, later)
    guard = later if code is None else partial(guarded, later, code, partial(_refused, api), None)
    return HandlerRow(api, guard, read=reader_of_rows(api))


async def _of_decoded(later: AnswerLater, call: KafkaCall) -> Fields:
    """A handler that gets decoded rows, beside the event loop if they are many, unless a node gets them as bytes."""
    rows = {name: each for name, each in call.body.items() if isinstance(each, EncodedRows)}
    if rows and call.node.of_cluster is None:
        count = sum(each.encoded().count for each in rows.values())
        lists = await call.off_loop(count, lambda: {name: list(each) for name, each in rows.items()})
        call = replace(call, body={**call.body, **lists})
    return await later(call)


READ_ROWS: Final = (
    _row(
        LIST_GROUPS,
        partial(of_pass, LIST_GROUPS, partial(_merged, LIST_GROUPS, "groups", "group_id", GROUPS_TOPIC)),
        _OF_GROUPS,
    ),
    _row(DESCRIBE_GROUPS, _groups, _OF_GROUPS),
    _row(CONSUMER_GROUP_DESCRIBE, _consumer_groups, _OF_GROUPS),
    _row(OFFSET_FETCH, partial(without_hidden, OFFSET_FETCH, _offsets), _OF_GROUPS),
    _row(
        LIST_TRANSACTIONS,
        partial(
            of_pass,
            LIST_TRANSACTIONS,
            partial(_merged, LIST_TRANSACTIONS, "transaction_states", "transactional_id", TRANSACTIONS_TOPIC),
        ),
        _OF_TRANSACTIONS,
    ),
    _row(DESCRIBE_TRANSACTIONS, _transactions, _OF_TRANSACTIONS),
    _row(LIST_OFFSETS, _of_leaders(LIST_OFFSETS)),
    _row(DESCRIBE_PRODUCERS, _of_leaders(DESCRIBE_PRODUCERS)),
    _row(
        DESCRIBE_LOG_DIRS,
        partial(without_hidden, DESCRIBE_LOG_DIRS, partial(of_pass, DESCRIBE_LOG_DIRS, _log_dirs)),
        _OF_CLUSTER,
    ),
    _row(
        LIST_PARTITION_REASSIGNMENTS,
        partial(
            without_hidden,
            LIST_PARTITION_REASSIGNMENTS,
            partial(of_pass, LIST_PARTITION_REASSIGNMENTS, _reassignments),
        ),
        _OF_CLUSTER,
    ),
    _for_operators(DESCRIBE_ACLS),
    _row(DESCRIBE_CONFIGS, _configs, _OF_CLUSTER),
    _row(
        LIST_CONFIG_RESOURCES,
        partial(without_hidden_resources, "config_resources", _relay(LIST_CONFIG_RESOURCES), None),
        _OF_CLUSTER,
    ),
    _for_operators(DESCRIBE_CLIENT_QUOTAS),
    _for_operators(DESCRIBE_USER_SCRAM_CREDENTIALS),
)
