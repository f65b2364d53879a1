"""The topics of a table as elements of arrays in answers, encoded by Arrow's kernels, a chunk at a time."""

from __future__ import annotations

from broker_core.wire.kafka.topic_fragments.described_fragments import (
    described_family,
    described_partitions,
)
from broker_core.wire.kafka.topic_fragments.family import Family, with_operations
from broker_core.wire.kafka.topic_fragments.listed_fragments import (
    LISTED_FAMILY,
    RESOURCE_FAMILY,
    config_resource,
)
from broker_core.wire.kafka.topic_fragments.log_dir_fragments import log_dir_family
from broker_core.wire.kafka.topic_fragments.metadata_fragments import metadata_family, metadata_partitions
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
