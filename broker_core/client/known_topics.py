"""The topics that a discovery counts as existing, and the changes to them by one more answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["KnownTopics"]

#: ``pyarrow.LargeStringArray`` of full names, each once.
_Names: TypeAlias = Any

_NO_NAMES: Final = pa.array([], pa.large_string())


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The known topics of a discovery: ``names`` are all that count as existing; ``missing`` are the ones that the last
    answers lacked, by the number of these answers, largest first.
    """

    names: _Names = field(default_factory=lambda: _NO_NAMES)
    missing: tuple[tuple[_Names, int], ...] = ()

    def after(self, listed: _Names | None, confirmations: int) -> tuple[KnownTopics, _Names, _Names]:
        """The known topics after one more answer, the names that it adds, and the names that it removes.

        ``listed`` are the names of the answer; ``None`` says that they are unchanged. A topic is removed by the
        ``confirmations``-th answer in a row without it.
        """
        if listed is None:
            counted = [(names, count + 1) for names, count in self.missing]
            added = _NO_NAMES
        else:
            here, there = _between_common_ends(listed, self.names)
            added, absent = _without(here, there), _without(there, here)
            counted = []
            fresh = absent
            for names, count in self.missing:
                still = _within(names, absent)
                if len(still):
                    counted.append((still, count + 1))
                    fresh = _without(fresh, still)
            if len(fresh):
                counted.append((fresh, 1))
        removed = _all([names for names, count in counted if count >= confirmations])
        missing = tuple((names, count) for names, count in counted if count < confirmations)
        if listed is not None:
            known = _all([listed, *(names for names, _ in missing)])
        else:
            known = _without(self.names, removed)
        return KnownTopics(known, missing), added, removed

    def updated(self, listed: _Names, gone: _Names) -> tuple[KnownTopics, _Names, _Names]:
        """The known topics once the server has reported that ``gone`` went, so that ``listed`` are all; and the names
        that this adds and removes. It is no answer: topics that the last answers lacked are missing as often as before.
        """
        added, absent = _without(listed, self.names), _without(self.names, listed)
        removed = _within(absent, gone)
        absent = _without(absent, removed)
        rest = ((_within(names, absent), count) for names, count in self.missing)
        missing = tuple((names, count) for names, count in rest if len(names))
        return KnownTopics(_all([listed, *(names for names, _ in missing)]), missing), added, removed

    @property
    def listed(self) -> _Names:
        """The names of the last answer."""
        return _without(self.names, _all([names for names, _ in self.missing]))


def _between_common_ends(names: _Names, others: _Names) -> tuple[_Names, _Names]:
    """Both columns without their common beginning and end: after few changes, little is left to compare by a table."""
    begin = _alike(names, others, at_end=False)
    names, others = names.slice(begin), others.slice(begin)
    end = _alike(names, others, at_end=True)
    return names.slice(0, len(names) - end), others.slice(0, len(others) - end)


def _alike(names: _Names, others: _Names, *, at_end: bool) -> int:
    """The number of equal names in the same order, from the beginning or from the end."""
    size = min(len(names), len(others))
    if not size:
        return 0
    if at_end:
        names, others = names.slice(len(names) - size), others.slice(len(others) - size)
    same = pc.equal(names.slice(0, size), others.slice(0, size)).to_numpy(zero_copy_only=False)
    if same.all():
        return size
    return int((same[::-1] if at_end else same).argmin())


def _all(columns: list[_Names]) -> _Names:
    columns = [each for each in columns if len(each)]
    if len(columns) == 1:
        return columns[0]
    return pa.concat_arrays(columns) if columns else _NO_NAMES


def _within(names: _Names, others: _Names) -> _Names:
    """The names that are in ``others`` too."""
    return names.filter(pc.is_in(names, value_set=others)) if len(names) and len(others) else _NO_NAMES


def _without(names: _Names, others: _Names) -> _Names:
    """The names that are not in ``others``; the column itself if that is all of them."""
    if not len(names) or not len(others):
        return names
    found = pc.is_in(names, value_set=others)
    return names.filter(pc.invert(found)) if pc.any(found).as_py() else names
