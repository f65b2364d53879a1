"""Requests about partitions, relayed to the nodes that lead them, and their answers joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from broker_core.client import ClientError
from broker_core.servers.kafka.gateway.relay import ask, beside, front_of, gone_or_refused, joined, part_of
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.upstream.kafka import ANY
from broker_core.wire.kafka import DESCRIBE_PRODUCERS, METADATA, Api, Fields

__all__ = ["by_leader"]


async def by_leader(api: Api, gone: Callable[[KafkaCall], Fields], call: KafkaCall) -> Fields:
    """A handler of requests about partitions: at the listener's own port each one's leader is asked.

    ``gone`` makes the part of a leader that does not answer.
    """
    topics = call.body["topics"]
    if call.node.of_cluster is not None or not topics:
        return await ask(call, api)
    try:
        leaders = await _leaders(call, [row["name"] for row in topics])
    except ClientError as failed:
        return gone_or_refused(failed, call, gone)
    indexes = "partition_indexes" if api is DESCRIBE_PRODUCERS else "partitions"
    nodes: dict[int | None, list[tuple[int, Fields]]] = {}
    for place, row in enumerate(topics):
        parts: dict[int | None, list[Any]] = {}
        for each in row[indexes]:
            number = each["partition_index"] if isinstance(each, dict) else each
            parts.setdefault(leaders.get((row["name"], number)), []).append(each)
        for node, some in parts.items() or [(None, [])]:
            nodes.setdefault(node, []).append((place, {**row, indexes: some}))
    # Any node has an error for a partition without leader.
    found = await beside(
        part_of(call, api, node, {**call.body, "topics": [row for _, row in some]}, gone)
        for node, some in nodes.items()
    )
    answers: list[Sequence[Fields]] = [part["topics"] for part in found]
    # A node has a row of producers for each one that names a topic, and one of offsets for each topic (4.3.1).
    places = [place for some in nodes.values() for place, _ in some] if api is DESCRIBE_PRODUCERS else ()
    raw = await joined(call, answers, lambda rows: places or rows.texts("name"))
    if raw is not None and len(set(raw.names)) == len(raw.rows):
        # A page has an order of its own.
        return {"topics": raw.in_order(sorted(places), {}) if places and call.page is None else raw.rows}
    every = list(chain.from_iterable(answers))
    rows: dict[Any, Fields] = {}
    for key, row in zip(places or [row["name"] for row in every], every, strict=False):
        known = rows.setdefault(key, {**row, "partitions": []})
        known["partitions"] = [*known["partitions"], *row["partitions"]]
    if not places:
        return {"topics": [*rows.values()]}
    for place, row in rows.items():
        parted: dict[int, list[Fields]] = {}
        for each in reversed(row["partitions"]):
            parted.setdefault(each["partition_index"], []).append(each)
        row["partitions"] = [parted[number].pop() for number in topics[place][indexes] if parted.get(number)]
    return {"topics": [rows[place] for place in sorted(rows)]}


async def _leaders(call: KafkaCall, names: Iterable[str]) -> dict[tuple[str, int], int]:
    """The node that leads each partition now. Raises :exc:`~broker_core.client.ClientError`."""
    body = {"topics": [{"name": name} for name in dict.fromkeys(names)], "allow_auto_topic_creation": False}
    front = front_of(call)
    value = await front.cluster.request(ANY, METADATA, None, body, front.identity(call.asker))
    return {
        (row["name"], part["partition_index"]): part["leader_id"]
        for row in value["topics"]
        for part in row["partitions"]
        if part["leader_id"] >= 0
    }
