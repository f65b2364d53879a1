"""Answers of plugins that carry a version: built once, and taken again while the version is the same.

A plugin is asked every time; it saves checking, ordering and encoding the returned names. A key holds all that the
plugin said its answers depend on (the principal too, unless it said otherwise), so nothing crosses principals.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from broker_core.listing import Listing
from broker_core.names import NamespaceName
from broker_core.pipeline.remembered.answer_store import AnswerStore

__all__ = ["ListingsByResultVersion"]

#: The kinds of answers that are kept by a version: returned with one, answered after one was given, and masked.
_BY_VERSION: Final = frozenset({"kept", "version", "masked"})


class ListingsByResultVersion:
    """Listings by question, each with its version."""

    def __init__(self, store: AnswerStore) -> None:
        self._store = store

    def get(self, key: Hashable, version: str | int) -> tuple[Listing, int] | None:
        """The listing for this question at this version, and the number of names that the plugin had returned."""
        kept: tuple[str | int, Listing, int] | None = self._store.get(("kept", key))
        return None if kept is None or kept[0] != version else kept[1:]

    def put(
        self, key: Hashable, version: str | int, listing: Listing, returned: int, *, text: int = 0
    ) -> bool:
        """Keep a listing in place of an older one, if there is room; ``text`` counts the bytes of the key."""
        return self._store.put(("kept", key), listing.namespace, (version, listing, returned), listing, text)

    def forget(self, namespace: NamespaceName | None) -> None:
        """Drop the versioned answers about a namespace, or about all: its topics, or its masks, changed.

        The last answers of plugins that may fail stay: they stand in for failures, and have a time limit of their own.
        """
        for key in self._store.keys(namespace):
            if isinstance(key, tuple) and key[0] in _BY_VERSION:
                self._store.drop(key)
