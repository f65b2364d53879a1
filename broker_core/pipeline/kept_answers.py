"""Answers of plugins that carry a version: built once, and taken again while the version is the same.

A plugin is asked every time; what is saved is checking, ordering and encoding the names it returns. A key holds all
that the plugin said its answers depend on (the principal too, unless it said otherwise), so nothing crosses principals.
"""

from __future__ import annotations

from collections.abc import Hashable

from broker_core.listing import Listing
from broker_core.names import NamespaceName
from broker_core.pipeline.answer_store import AnswerStore

__all__ = ["KeptAnswers"]


class KeptAnswers:
    """Listings by question, each with the version that it is for."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    def get(self, key: Hashable, version: str | int) -> tuple[Listing, int] | None:
        """The listing for this question at this version, and how many names the plugin had returned."""
        kept: tuple[str | int, Listing, int] | None = self._store.get(("kept", key))
        return None if kept is None or kept[0] != version else kept[1:]

    def put(
        self, key: Hashable, version: str | int, listing: Listing, returned: int, *, text: int = 0
    ) -> bool:
        """Keep a listing in place of an older one, if there is room; ``text`` counts the bytes of the key."""
        return self._store.put(("kept", key), listing.namespace, (version, listing, returned), listing, text)

    def forget(self, namespace: NamespaceName | None) -> None:
        """Drop all of a namespace, or of all: its topics changed."""
        for key in self._store.keys(namespace):
            if isinstance(key, tuple) and key[0] == "kept":
                self._store.drop(key)
