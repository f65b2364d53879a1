"""Names that are other topics now: deleted and made anew between two looks, so that both listings have them."""

from __future__ import annotations

from typing import Final

import numpy as np

from broker_core.catalog import CatalogLogReader
from broker_core.change_log import CatalogVersion
from broker_core.listing.listing import Selection
from broker_core.names import NamespaceName

__all__ = ["RecreatedTopics"]

#: Names that are told; of more, all topics are sent anew.
_MOST: Final = 1000


class RecreatedTopics:
    """What the catalogue's log tells of the answers to one question; for one event loop.

    A version is read before each answer, which is of that version or a later one. So a deletion may be of the round
    before the creation; a creation that an answer had already may be told once more, and none is missed.
    """

    def __init__(self, log: CatalogLogReader, namespace: NamespaceName) -> None:
        self._log = log
        self._namespace = namespace
        self._versions: tuple[CatalogVersion, CatalogVersion] | None = None
        self._names: list[str] | None = []
        #: The last answer whose names were compared.
        self._selection: Selection | None = None
        #: The number of the last version with such names; 0 before.
        self.number = 0

    async def look(self) -> None:
        """Read the log, before an answer. Raises :exc:`~broker_core.errors.ListingFailed`."""
        now = await self._log.version(self._namespace)
        if self._versions is None:
            self._versions = now, now
            return
        gone, since = self._versions
        if not now.same_state(since):
            found = await self._log.recreated(self._namespace, since, gone, _MOST)
            self._names = None if found is None or self._names is None else self._names + found
            self._versions = since, now

    def of(self, selection: Selection) -> Selection | None:
        """The names of an answer that are other topics than in the one before; ``None`` where nobody knows."""
        names, before = self._names, self._selection
        self._names, self._selection = [], selection
        assert self._versions is not None
        if names == [] or before is None:
            return selection.range(0, 0)
        self.number = self._versions[1].number
        if names is None:
            return None
        kept = [
            name
            for name, one, other in zip(names, _has(before, names), _has(selection, names), strict=True)
            if one and other
        ]
        rows, _ = selection.listing.locate(kept)
        return selection.listing.rows(np.unique(rows))


def _has(selection: Selection, names: list[str]) -> list[bool]:
    rows, present = selection.listing.locate(names)
    found: list[bool] = (present & np.isin(rows, selection.row_array)).tolist()
    return found
