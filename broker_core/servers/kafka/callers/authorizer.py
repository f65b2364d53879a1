"""The rights of a client by Kafka's ACLs, which only narrow the rights by the rules of the settings and the plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from broker_core.kafka.acls import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    AclBinding,
    Operation,
    ResourceType,
)
from broker_core.listing import TopicChunk
from broker_core.servers.kafka.callers.caller import Caller

__all__ = ["AllowAll", "Authorizer"]

_Array = np.ndarray[Any, Any]


class Authorizer(Protocol):
    """Decides for the principal and the host of a call, in its namespace."""

    @property
    def enabled(self) -> bool:
        """Whether there are ACLs; without them, all is allowed, and the APIs of ACLs are refused (54)."""

    def is_current(self, call: Caller) -> bool:
        """Whether it has read all changes; it is asked before each request, and if not, :meth:`refresh` is called."""

    async def refresh(self, call: Caller) -> None:
        """Read the changes. Raises :exc:`~broker_core.errors.ListingFailed` if they cannot be read."""

    def close(self) -> None:
        """Close its source."""

    def bindings(self, call: Caller) -> Sequence[AclBinding]:
        """All ACLs of the namespace."""

    def allows(self, call: Caller, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do this with one resource."""

    def chunk_mask(self, call: Caller, operation: Operation, chunk: TopicChunk) -> _Array | None:
        """Whether the client may do this with each topic of a chunk; ``None``: with all."""

    def chunk_operations(self, call: Caller, chunks: Sequence[TopicChunk]) -> list[_Array | None]:
        """The bits (int32) of the client's operations on each topic, by chunk; ``None``: all, on all.

        They are of one state of the ACLs. For any thread: for many topics it takes long.
        """

    def topic_operations(self, call: Caller, name: str) -> int:
        """The bits of the client's operations on a topic."""

    def cluster_operations(self, call: Caller) -> int:
        """The bits of the client's operations on the cluster."""


class AllowAll:
    """An authorizer without ACLs, which allows everything."""

    enabled = False

    def is_current(self, _call: Caller) -> bool:
        return True

    async def refresh(self, _call: Caller) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def bindings(self, _call: Caller) -> Sequence[AclBinding]:
        return ()

    def allows(self, _call: Caller, _operation: Operation, _kind: ResourceType, _name: str) -> bool:
        return True

    def chunk_mask(self, _call: Caller, _operation: Operation, _chunk: TopicChunk) -> _Array | None:
        return None

    def chunk_operations(self, _call: Caller, chunks: Sequence[TopicChunk]) -> list[_Array | None]:
        return [None] * len(chunks)

    def topic_operations(self, _call: Caller, _name: str) -> int:
        return TOPIC_OPERATIONS

    def cluster_operations(self, _call: Caller) -> int:
        return CLUSTER_OPERATIONS
