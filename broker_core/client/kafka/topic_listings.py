"""The topics that a server lists: names and their facts, in columns."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from broker_core.client.kafka.results import PagedBy
from broker_core.counted import counted
from broker_core.wire.kafka import ZERO_ID

__all__ = ["ListTopicsResult", "TopicListing"]


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic of a listing; ``topic_id`` is zero if ids were not asked for, or the server has none."""

    name: str
    topic_id: uuid.UUID
    is_internal: bool


class ListTopicsResult(Sequence[TopicListing]):
    """The topics in the order of the server. A large listing is a few columns; an item is made when it is indexed.

    ``paged_by`` says which side cut the answer into pages: the ``"server"`` (KIP-1062), or neither (``None``).
    """

    def __init__(
        self,
        names: Sequence[str],
        internal: bytes,
        ids: Sequence[uuid.UUID] | None = None,
        paged_by: PagedBy = None,
    ) -> None:
        """``internal`` has a byte for each name, 1 for an internal topic."""
        self.paged_by = paged_by
        self._names = names
        self._internal = internal
        self._ids = ids

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> TopicListing: ...
    @overload
    def __getitem__(self, index: slice) -> list[TopicListing]: ...
    def __getitem__(self, index: int | slice) -> TopicListing | list[TopicListing]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        topic_id = ZERO_ID if self._ids is None else self._ids[index]
        return TopicListing(self._names[index], topic_id, bool(self._internal[index]))

    def names(self) -> list[str]:
        """The names."""
        return list(self._names)

    @cached_property
    def _by_name(self) -> dict[str, uuid.UUID]:
        return dict(zip(self._names, self._ids or (), strict=False))

    def topic_ids(self) -> dict[str, uuid.UUID]:
        """The ids by name; empty if ids were not asked for."""
        return dict(self._by_name)

    def topic_id(self, name: str) -> uuid.UUID:
        """The id of a topic; zero for one that is not in the listing, as in Kafka's ``Cluster.topicId``."""
        return self._by_name.get(name, ZERO_ID)

    def __repr__(self) -> str:
        return f"<ListTopicsResult of {counted(len(self), 'topic')}>"
