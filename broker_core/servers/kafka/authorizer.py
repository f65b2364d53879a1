"""What Kafka's ACLs allow a client. They only narrow what the rules of the settings and the plugins let it do."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from broker_core.kafka.acls.bindings import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation, ResourceType
from broker_core.listing.topic_table import TopicChunk
from broker_core.servers.kafka.caller import Caller

__all__ = ["AllowAll", "Authorizer"]

_Array = np.ndarray[Any, Any]


class Authorizer(Protocol):
    """Decides for the principal and the host of a call, in its namespace."""

    @property
    def enabled(self) -> bool:
        """Whether there are ACLs; without them, all is allowed, and the APIs of ACLs are refused (54)."""

    def allows(self, call: Caller, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do this with one resource."""

    def chunk_mask(self, call: Caller, operation: Operation, chunk: TopicChunk) -> _Array | None:
        """Whether the client may do this with each topic of a chunk; ``None``: with all."""

    def chunk_operations(self, call: Caller, chunk: TopicChunk) -> _Array | None:
        """The bits (int32) of what the client may do with each topic of a chunk; ``None``: all, with all."""

    def topic_operations(self, call: Caller, name: str) -> int:
        """The bits of what the client may do with a topic."""

    def cluster_operations(self, call: Caller) -> int:
        """The bits of what the client may do with the cluster."""


class AllowAll:
    """There are no ACLs."""

    enabled = False

    def allows(self, _call: Caller, _operation: Operation, _kind: ResourceType, _name: str) -> bool:
        return True

    def chunk_mask(self, _call: Caller, _operation: Operation, _chunk: TopicChunk) -> _Array | None:
        return None

    def chunk_operations(self, _call: Caller, _chunk: TopicChunk) -> _Array | None:
        return None

    def topic_operations(self, _call: Caller, _name: str) -> int:
        return TOPIC_OPERATIONS

    def cluster_operations(self, _call: Caller) -> int:
        return CLUSTER_OPERATIONS
