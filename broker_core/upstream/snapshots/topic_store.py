"""The contract of a store behind a gateway: what a live snapshot is made of, and kept true by."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from broker_core.access.asker import Asker
from broker_core.names import Mode, NamespaceName

__all__ = ["SHARED", "ListedTopics", "TopicStore", "View"]

#: For whom a store lists: equal views have one listing. What it is, is the store's own.
View = Hashable
#: The view of a role that lists for all.
SHARED: Final = "shared"


@dataclass(frozen=True, slots=True)
class ListedTopics:
    """What a store lists: full names as a column of Arrow, of which none is checked, and its own hash of them.

    ``names`` is ``None`` where they still have the hash that was asked with.
    """

    names: Any | None
    topics_hash: str | None
    size: int = 0


class TopicStore(Protocol):
    """A cluster, as live snapshots need it. All errors are :exc:`~broker_core.errors.ListingFailed`."""

    @property
    def has_verdicts(self) -> bool:
        """Whether one view is for all, so that each principal's right to a namespace is asked apart from it."""

    def view_of(self, asker: Asker) -> View:
        """For whom the store lists if this client asks."""

    async def list(
        self,
        view: View,
        namespace: NamespaceName,
        mode: Mode,
        known_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
    ) -> ListedTopics:
        """The topics of one domain, as of some moment after this was called.

        ``admit`` is awaited with the size of a large answer before that is read; what it raises is raised here.
        """

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        """Ask whether this client may list a namespace. Raises :exc:`ListingFailed` with the cause ``DENIED``."""
