"""The contract of a store behind a gateway, by which live snapshots are made and kept true."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from broker_core.access import Asker
from broker_core.names import Mode, NamespaceName

__all__ = ["SHARED", "StoreListing", "TopicStore", "TopicUpdate", "UpdateReceiver", "View"]

#: A principal of listings: equal views have one listing. Its type is the store's own.
View = Hashable
#: The view of a role that lists for all.
SHARED: Final = "shared"


@dataclass(frozen=True, slots=True)
class StoreListing:
    """A listing of a store: unchecked full names as an Arrow column, and its own hash of them.

    ``names`` is ``None`` if they still have the hash of the question.
    """

    names: Any | None
    topics_hash: str | None
    size: int = 0


@dataclass(frozen=True, slots=True)
class TopicUpdate:
    """Topics that came and went at once, and the hash of all topics after it."""

    added: Sequence[str]
    removed: Sequence[str]
    topics_hash: str


class UpdateReceiver(Protocol):
    """The receiver of a watch's updates; called on the event loop."""

    @property
    def known_hash(self) -> str | None:
        """The hash of the known topics."""

    def began(self, topics_hash: str) -> None:
        """Note that the watch is open, and the topics have this hash; updates may have come before."""

    def update(self, update: TopicUpdate) -> None:
        """Note that topics came or went."""


class TopicStore(Protocol):
    """A cluster, as live snapshots need it. All errors are :exc:`~broker_core.errors.ListingFailed`."""

    @property
    def has_verdicts(self) -> bool:
        """Whether one view is for all, so that each principal's right to a namespace is asked separately."""

    @property
    def lists_for_all(self) -> bool:
        """Whether all clients have one view."""

    def view_of(self, asker: Asker) -> View:
        """The view that the store lists for this client."""

    async def list(
        self,
        view: View,
        namespace: NamespaceName,
        mode: Mode,
        known_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
    ) -> StoreListing:
        """The topics of one domain, as of some moment after this was called.

        ``admit`` is awaited with the size of a large answer before that is read; its errors are raised here.
        """

    async def watch(self, view: View, namespace: NamespaceName, watcher: UpdateReceiver) -> bool:
        """Report changes of persistent topics until the session ends; false if the store offers no watches."""

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        """Ask whether this client may list a namespace. Raises :exc:`ListingFailed` with the cause ``DENIED``."""
