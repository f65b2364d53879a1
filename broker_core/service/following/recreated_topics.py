"""Finds recreated topics: deleted and made anew under one name between two looks, so that both listings have it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from broker_core.catalog import CatalogLogReader
from broker_core.change_log import CatalogVersion
from broker_core.errors import InvalidName
from broker_core.listing import Selection
from broker_core.names import NamespaceName

__all__ = ["RecreatedTopics", "names_in"]

#: The most names that are sent; if there are more, all topics are sent anew.
_MOST: Final = 1000
#: Characters of the text of a place, and the number in it, of 64 bits.
_LONGEST: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,18}")


class _Place(NamedTuple):
    """A place in the log: names were reported that were made up to version ``since``, and deleted after ``gone``."""

    gone: CatalogVersion
    since: int

    def __str__(self) -> str:
        return f"{self.gone}~{self.gone.stamp}~{self.since}"

    @classmethod
    def parse(cls, text: str) -> _Place | None:
        version, *rest = text.split("~")
        if len(rest) != 2 or len(text) > _LONGEST or not _NUMBER.fullmatch(rest[1]):
            return None
        try:
            gone = CatalogVersion.parse(version)
        except InvalidName:
            return None
        return cls(CatalogVersion(gone.catalog_id, gone.number, rest[0]), int(rest[1]))


class RecreatedTopics:
    """Recreated names in the answers to one question, by the catalogue's log; for one event loop.

    A version is read before each answer, which is of that version or a later one. So a deletion may be of the round
    before the creation; a creation that an answer had already may be reported once more, and none is missed.
    """

    def __init__(self, log: CatalogLogReader, namespace: NamespaceName) -> None:
        self._log = log
        self._namespace = namespace
        self._versions: tuple[CatalogVersion, CatalogVersion] | None = None
        self._names: list[str] | None = []
        #: The last answer whose names were compared.
        self._selection: Selection | None = None
        self._reported: _Place | None = None

    @property
    def reported(self) -> str:
        """The place up to which recreated names were reported, as text for :meth:`missed`."""
        return str(self._reported)

    async def look(self) -> None:
        """Read the log, before an answer. Raises :exc:`~broker_core.errors.ListingFailed`."""
        now = await self._log.version(self._namespace)
        if self._versions is None:
            self._versions = now, now
            self._reported = _Place(now, now.number)
            return
        gone, since = self._versions
        if not now.same_state(since):
            found = await self._log.recreated(self._namespace, since, gone, _MOST)
            self._names = None if found is None or self._names is None else self._names + found
            self._versions = since, now

    async def missed(self, place_text: str) -> list[str] | None:
        """Names that are other topics now than they were when ``place_text`` was the text of :attr:`reported`.

        ``None`` if unknown. Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        place = _Place.parse(place_text)
        if place is None:
            return None
        since = CatalogVersion(place.gone.catalog_id, place.since)
        return await self._log.recreated(self._namespace, since, place.gone, _MOST)

    def of(self, selection: Selection) -> Selection | None:
        """The names of an answer that are other topics than in the answer before; ``None`` if unknown."""
        names, before = self._names, self._selection
        self._names, self._selection = [], selection
        assert self._versions is not None
        self._reported = _Place(self._versions[0], self._versions[1].number)
        if names == [] or before is None:
            return selection.range(0, 0)
        if names is None:
            return None
        kept = [
            name
            for name, one, other in zip(names, _has(before, names), _has(selection, names), strict=True)
            if one and other
        ]
        return _of_names(selection, kept)


def names_in(selection: Selection, names: list[str]) -> Selection:
    """The given names that an answer has."""
    return _of_names(
        selection, [name for name, there in zip(names, _has(selection, names), strict=True) if there]
    )


def _of_names(selection: Selection, names: list[str]) -> Selection:
    rows, _ = selection.listing.locate(names)
    return selection.listing.rows(np.unique(rows))


def _has(selection: Selection, names: list[str]) -> list[bool]:
    rows, present = selection.listing.locate(names)
    found: list[bool] = (present & np.isin(rows, selection.row_array)).tolist()
    return found
