"""The topics of a table as elements of arrays in answers, encoded by Arrow's kernels, a chunk at a time."""

from __future__ import annotations

from broker_core.wire.kafka.topic_fragments.family import Family, with_operations
from broker_core.wire.kafka.topic_fragments.one_node_fragments import (
    LISTED_FAMILY,
    RESOURCE_FAMILY,
    config_resource,
    described_family,
    described_partitions,
    log_dir_family,
    metadata_family,
    metadata_partitions,
)
from broker_core.wire.kafka.topic_fragments.placed_fragments import (
    PlacedAnswer,
    PlacedTopics,
    placed_described_family,
    placed_metadata_family,
    read_placed_answer,
    read_placed_topics,
)

__all__ = [
    "LISTED_FAMILY",
    "RESOURCE_FAMILY",
    "Family",
    "PlacedAnswer",
    "PlacedTopics",
    "config_resource",
    "described_family",
    "described_partitions",
    "log_dir_family",
    "metadata_family",
    "metadata_partitions",
    "placed_described_family",
    "placed_metadata_family",
    "read_placed_answer",
    "read_placed_topics",
    "with_operations",
]
