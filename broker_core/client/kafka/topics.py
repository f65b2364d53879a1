"""Topics as arguments and as descriptions of the admin client."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broker_core.client.kafka.cluster import Node
from broker_core.kafka.acls import Operation

__all__ = ["NewPartitions", "NewTopic", "TopicDescription", "TopicPartitionInfo"]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made; ``None`` leaves a number to the server.

    ``replica_assignments`` are the ids of nodes by partition; then there are no numbers.
    """

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    replica_assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The total number of partitions for a topic; ``assignments`` are the ids of nodes of each added one."""

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True)
class TopicPartitionInfo:
    """A partition. ``leader`` is ``None`` if it has none; the last two are ``None`` if the server does not give them
    (KIP-966).
    """

    partition: int
    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]
    eligible_leader_replicas: tuple[Node, ...] | None = None
    last_known_elr: tuple[Node, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions in order. ``topic_id`` is zero if the server has none; ``authorized_operations`` are
    the asker's, ``None`` if not asked for.
    """

    name: str
    topic_id: uuid.UUID
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    authorized_operations: frozenset[Operation] | None = None
