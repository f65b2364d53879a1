"""Groups and transactions: listed at all nodes, described by their coordinators, in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.calls.answers_by_item import row_error
from broker_core.client.kafka.calls.nodes import (
    GROUP,
    TRANSACTION,
    at_node,
    by_topic,
    check_coordinator,
    coordinators,
    every_node,
)
from broker_core.client.kafka.groups import (
    GroupDescription,
    GroupListing,
    GroupMember,
    OffsetAndMetadata,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from broker_core.client.kafka.kafka_errors import kafka_error, may_pass
from broker_core.client.kafka.pages import Page, Pager
from broker_core.client.kafka.results import PagedBy, Results
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_TRANSACTIONS,
    OFFSET_FETCH,
    Api,
    Fields,
)

__all__ = [
    "classic_groups",
    "consumer_groups",
    "group_offsets",
    "listed_groups",
    "listed_transactions",
    "transactions",
    "with_members",
    "with_offsets",
]

V = TypeVar("V")
#: The first version of OffsetFetch with several groups, and the last with names of topics.
_SEVERAL = 8
_WITH_NAMES = 9


async def listed_groups(
    pager: Pager, states: Sequence[str], types: Sequence[str]
) -> AsyncIterator[Page[GroupListing]]:
    """The groups of all nodes; each node lists its own."""
    body = {"states_filter": list(states), "types_filter": list(types)}
    least = 5 if types else 4 if states else 0
    for node_id in await every_node(pager.attempts()):
        async for value, paged_by in pager.answers(LIST_GROUPS, body, at_node(node_id), least=least):
            rows = (
                GroupListing(row["group_id"], row["protocol_type"], row["group_state"], row["group_type"])
                for row in value["groups"]
            )
            yield Page(rows, paged_by)


async def listed_transactions(
    pager: Pager, states: Sequence[str], producer_ids: Sequence[int]
) -> AsyncIterator[Page[TransactionListing]]:
    """The transactions of all nodes."""
    body = {"state_filters": list(states), "producer_id_filters": list(producer_ids)}
    for node_id in await every_node(pager.attempts()):
        async for value, paged_by in pager.answers(LIST_TRANSACTIONS, body, at_node(node_id)):
            rows = (
                TransactionListing(row["transactional_id"], row["producer_id"], row["transaction_state"])
                for row in value["transaction_states"]
            )
            yield Page(rows, paged_by)


def classic_groups(pager: Pager, ids: Iterable[str]) -> AsyncIterator[Results[str, GroupDescription]]:
    """Groups of the classic protocol; from version 6 of the API on, missing groups are errors."""

    def described(row: Fields) -> GroupDescription:
        members = (
            GroupMember(each["member_id"], each["client_id"], each["client_host"], each["group_instance_id"])
            for each in row["members"]
        )
        kind, protocol = row["protocol_type"], row["protocol_data"]
        return GroupDescription(row["group_id"], row["group_state"], kind, protocol, tuple(members))

    return _by_coordinator(
        pager, DESCRIBE_GROUPS, GROUP, ids, lambda some: {"groups": some}, "groups", "group_id", described
    )


def consumer_groups(pager: Pager, ids: Iterable[str]) -> AsyncIterator[Results[str, GroupDescription]]:
    """Groups of consumers (KIP-848)."""

    def described(row: Fields) -> GroupDescription:
        members = (
            GroupMember(each["member_id"], each["client_id"], each["client_host"], each["instance_id"])
            for each in row["members"]
        )
        return GroupDescription(
            row["group_id"], row["group_state"], "consumer", row["assignor_name"], tuple(members)
        )

    return _by_coordinator(
        pager,
        CONSUMER_GROUP_DESCRIBE,
        GROUP,
        ids,
        lambda some: {"group_ids": some},
        "groups",
        "group_id",
        described,
    )


def with_members(group: GroupDescription, more: GroupDescription) -> GroupDescription:
    """A group with its members of the next page; if it changed meanwhile, in its new state."""
    return more._replace(members=(*group.members, *more.members))


def with_offsets(
    former: tuple[OffsetAndMetadata, ...], more: tuple[OffsetAndMetadata, ...]
) -> tuple[OffsetAndMetadata, ...]:
    """The committed offsets of a group with the next page's, which has all offsets of a recreated topic."""
    if former and more and more[0].partition <= former[-1].partition:
        former = tuple(each for each in former if each.partition.topic != more[0].partition.topic)
    return former + more


def transactions(pager: Pager, ids: Iterable[str]) -> AsyncIterator[Results[str, TransactionDescription]]:
    """Transactions by their ids."""

    def described(row: Fields) -> TransactionDescription:
        partitions = (
            TopicPartition(topic["topic"], index) for topic in row["topics"] for index in topic["partitions"]
        )
        return TransactionDescription(
            row["transactional_id"],
            row["transaction_state"],
            row["producer_id"],
            row["producer_epoch"],
            row["transaction_timeout_ms"],
            row["transaction_start_time_ms"],
            tuple(partitions),
        )

    return _by_coordinator(
        pager,
        DESCRIBE_TRANSACTIONS,
        TRANSACTION,
        ids,
        lambda some: {"transactional_ids": some},
        "transaction_states",
        "transactional_id",
        described,
    )


def group_offsets(
    pager: Pager, wanted: Mapping[str, Iterable[TopicPartition] | None]
) -> AsyncIterator[Results[str, tuple[OffsetAndMetadata, ...]]]:
    """The committed offsets of groups, for the named partitions or for all (``None``)."""

    def body_of(some: list[str]) -> Fields:
        named = ((each, wanted[each]) for each in some)
        topics = [(each, None if partitions is None else by_topic(partitions)) for each, partitions in named]
        return {"groups": [{"group_id": each, "topics": rows} for each, rows in topics]}

    def described(row: Fields) -> tuple[OffsetAndMetadata, ...]:
        return tuple(
            OffsetAndMetadata(
                TopicPartition(topic["name"], one["partition_index"]),
                one["committed_offset"],
                one["committed_leader_epoch"],
                one["metadata"] or "",
                kafka_error(one["error_code"]),
            )
            for topic in row["topics"]
            for one in topic["partitions"]
        )

    return _by_coordinator(
        pager,
        OFFSET_FETCH,
        GROUP,
        wanted,
        body_of,
        "groups",
        "group_id",
        described,
        least=_SEVERAL,
        most=_WITH_NAMES,
    )


async def _by_coordinator(
    pager: Pager,
    api: Api,
    kind: int,
    keys: Iterable[str],
    body_of: Callable[[list[str]], Fields],
    array: str,
    key: str,
    described: Callable[[Fields], V],
    *,
    least: int = 0,
    most: int | None = None,
) -> AsyncIterator[Results[str, V]]:
    """The descriptions by key, page after page; a key may go on with the next page.

    A key whose node does not answer in time, or does not keep it any more, has that error, beside the others.
    """

    def page_of(answer: Fields, paged_by: PagedBy) -> Results[str, V]:
        rows: dict[str, V | ClientError] = {
            row[key]: row_error(row) or described(row) for row in answer[array]
        }
        return Results(rows, paged_by)

    every = list(dict.fromkeys(keys))
    by_node, failed = await coordinators(pager.attempts(), kind, every) if every else ({}, {})
    for part in pager.parts(failed):
        yield Results({each: failed[each] for each in part}, "client")
    for node_id, some in by_node.items():
        for part in pager.parts(some):
            left, last = dict.fromkeys(part), None

            def check(answer: Fields) -> None:
                nonlocal last
                last = answer
                check_coordinator(answer[array])

            try:
                async for value, paged_by in pager.answers(
                    api,
                    body_of(part),
                    at_node(node_id),
                    cut=True,
                    least=least,
                    most=most,
                    check=check,
                ):
                    last = None
                    for row in value[array][:-1]:  # the last one may go on
                        left.pop(row[key], None)
                    yield page_of(value, paged_by)
            except ClientError as error:
                if not may_pass(error):
                    raise
                rows = page_of(last, "client") if last else Results(dict.fromkeys(left, error), "client")
                yield rows
