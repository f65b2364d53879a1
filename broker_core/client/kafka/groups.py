"""Groups, their members and offsets, and transactions, in answers of a Kafka cluster."""

from __future__ import annotations

from typing import NamedTuple

from broker_core.client.client_errors import ClientError

__all__ = [
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "OffsetAndMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
]


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class GroupListing(NamedTuple):
    """A group in a listing; ``state`` and ``type`` are empty if the server is too old to give them."""

    group_id: str
    protocol_type: str
    state: str
    type: str


class GroupMember(NamedTuple):
    """A member of a group; ``instance_id`` is ``None`` for one without."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None = None


class GroupDescription(NamedTuple):
    """A group with its members in the order of their ids. ``protocol`` is the assignor."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[GroupMember, ...] = ()


class OffsetAndMetadata(NamedTuple):
    """The committed offset of a group for a partition: -1 for none. ``error``: why it is not known."""

    partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    error: ClientError | None = None


class TransactionListing(NamedTuple):
    """A transaction in a listing."""

    transactional_id: str
    producer_id: int
    state: str


class TransactionDescription(NamedTuple):
    """A transaction; times are in milliseconds, ``started`` since 1970, -1 while none is under way."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout: int
    started: int
    partitions: tuple[TopicPartition, ...] = ()
