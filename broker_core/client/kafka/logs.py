"""The logs of partitions in answers of a Kafka cluster: offsets, directories, producers, reassignments."""

from __future__ import annotations

from typing import NamedTuple

from broker_core.client.kafka.groups import TopicPartition

__all__ = ["PartitionOffset", "PartitionReassignment", "ProducerState", "ReplicaLog"]


class PartitionOffset(NamedTuple):
    """An offset of a partition; ``timestamp`` and ``leader_epoch`` are -1 if unknown."""

    offset: int
    timestamp: int
    leader_epoch: int


class ReplicaLog(NamedTuple):
    """The log of a partition in a directory of a node; ``partition`` is ``None`` of a directory without any.

    Sizes are in bytes: of the log, of the volume of the directory and of the free part of it, -1 if unknown.
    ``is_future``: it will replace another log.
    """

    node_id: int
    log_dir: str
    partition: TopicPartition | None
    size: int
    offset_lag: int
    is_future: bool
    total_bytes: int
    usable_bytes: int


class PartitionReassignment(NamedTuple):
    """A partition under reassignment; replicas are ids of nodes."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ProducerState(NamedTuple):
    """A producer of a partition; ``last_timestamp`` is in milliseconds since 1970, -1 if unknown."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int
