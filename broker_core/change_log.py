"""What tells of changes to topics: the protocol between whoever holds topics and whoever follows them.

The embedded catalogue has a change log, and a plugin that holds topics offers its own by the hook
``broker_core_change_log``. A plugin that keeps something made of topics (a precomputed listing, say) follows one: it
knows the version that its state is for, and asks what happened since.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from broker_core.catalog.listed import Listed
from broker_core.catalog.records import CatalogVersion, Change, Changes, Gap, Operation
from broker_core.names import NamespaceName

__all__ = ["CatalogVersion", "Change", "ChangeLog", "Changes", "Gap", "Listed", "Operation"]


@runtime_checkable
class ChangeLog(Protocol):
    """The versions and the changes of all namespaces in one place. Called on the event loop.

    A version is of one namespace and one catalogue id: numbers under different ids say nothing about each other. Its
    ``stamp`` tells it from one of the same number, which a restored copy may come to; a log that has none leaves it
    empty, and must then have another id after that. What cannot be reached raises
    :exc:`~broker_core.errors.ListingFailed`.
    """

    @property
    def name(self) -> str:
        """``catalog`` for the embedded one, else the name of the plugin."""

    async def catalog_id(self) -> str:
        """The id that versions are comparable under; another one where the topics were replaced as a whole."""

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The state of a namespace as of this call, if it is known without any waiting, else ``None``."""

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace, of some moment after this was called."""

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """All changes after ``since``, oldest first; a :class:`Gap` where they are not known.

        A gap may have any reason: ``since`` is of another catalogue, is newer than what is there (a restored copy), has
        another stamp than the version of this number has here (the same), or is older than the log
        reaches back. Whoever gets one reads the whole namespace anew.
        """
