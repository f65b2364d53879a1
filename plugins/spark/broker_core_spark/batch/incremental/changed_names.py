"""The changes of the names of a stretch: deleted rows, new names, and their places.

Either the names that may have changed are known, and are looked for among the former ones. Or all present names are
staged, and compared: names in order that are mostly alike by one pass, others by look-ups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, is_ascending
from broker_core_spark.batch.segments.segment_task import ordered_names
from broker_core_spark.batch.staging.order_keys import namespace_ranges, order_key, segment_ids
from broker_core_spark.format import DOMAIN_ORDER, SegmentRun

__all__ = ["NameChanges", "RunChanges", "StretchChanges"]

_Place: TypeAlias = tuple[str, str]
#: Names that are compared together, and of how many the difference of two columns may be one name.
_COMPARED: Final = 4096
_ALIKE: Final = 256


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The staged names of a stretch: all of them, or only the ones with ``keys``, which may have changed.

    ``digest`` is the digest of all staged names, if they are in order, each once; ``before`` is that of the former
    ones. Both are empty or ``None`` if they are not known.
    """

    staged: pa.RecordBatch
    keys: tuple[bytes, ...] | None = None
    digest: str = ""
    before: str | None = None

    @property
    def none(self) -> bool:
        """Whether the staged names are surely the former ones."""
        return bool(self.digest) and self.digest == self.before


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of a run: the former one if there was one, its rows that went, and the names that came.

    They come in front of the rows ``before``. ``first`` is the run's first row of now in its stretch.
    """

    namespace: str
    domain: str
    former: SegmentRun | None
    first: int
    gone: Array
    came: pa.RecordBatch
    before: Array

    @property
    def size(self) -> int:
        """The names of now."""
        return (0 if self.former is None else len(self.former.names)) - len(self.gone) + len(self.came)


@dataclass(frozen=True, slots=True)
class StretchChanges:
    """The changes of a stretch. ``starts`` are the first rows of its pieces, and ``size`` all rows.

    ``twice`` counts names that were staged more than once. ``gone`` are rows, ``came`` are in order, ``before`` are the
    rows in front of which they come. ``all_values`` has the staged properties of each row of now, if all names are
    staged.
    """

    starts: Array
    size: int
    gone: Array
    came: pa.RecordBatch
    before: Array
    twice: int
    all_values: tuple[pa.LargeStringArray, ...] | None

    @classmethod
    def of(
        cls, pieces: Sequence[Sequence[SegmentRun]], changes: NameChanges, property_keys: Sequence[str]
    ) -> StretchChanges:
        """The changes of the names of ``pieces``, each of which has its runs."""
        starts = np.cumsum([0, *(sum(len(run.names) for run in piece) for piece in pieces)])
        runs = _KeysOfRuns([run for piece in pieces for run in piece])
        staged, values, twice = changes.staged, None, 0
        if changes.keys is not None:
            came, repeated = ordered_names(staged, property_keys)
            changed = pa.array(changes.keys, pa.large_binary())
            rows = np.maximum(segment_ids(runs, changed) - 1, 0)
            same = pc.equal(runs.take(pa.array(rows)), changed).to_numpy(zero_copy_only=False)
            gone, before = rows[same], segment_ids(runs, came["key"])
            return cls(starts[:-1], len(runs), gone, came, before, len(repeated), None)
        former = runs.keys()
        if property_keys:
            staged, repeated = ordered_names(staged, property_keys)
            twice, values = len(repeated), tuple(staged.columns[1:])
        ordered = changes.digest or is_ascending(staged["key"])
        found = _difference(former, staged["key"]) if ordered else None
        if found is not None:
            gone, rows, before = found
            return cls(starts[:-1], len(runs), gone, staged.take(rows), before, twice, values)
        at = pc.index_in(staged["key"], former)
        known = at.drop_null().to_numpy()
        if len(known) > len(former) or np.bincount(known, minlength=1).max() > 1:
            staged, repeated = ordered_names(staged, property_keys)
            twice = len(repeated)
            at = pc.index_in(staged["key"], former)
            known = at.drop_null().to_numpy()
        is_new = at.is_null().to_numpy(zero_copy_only=False)
        came, repeated = ordered_names(staged.take(np.flatnonzero(is_new)), property_keys)
        gone = np.setdiff1d(np.arange(len(former)), known, assume_unique=True)
        before = segment_ids(former, came["key"])
        return cls(starts[:-1], len(runs), gone, came, before, twice + len(repeated), values)

    @property
    def changed(self) -> bool:
        return bool(len(self.gone) or len(self.came))

    def _of_piece(self, number: int) -> tuple[Array, Array]:
        """The rows that went of a piece, and the numbers of the names that came to it."""
        low = int(self.starts[number])
        high = int(self.starts[number + 1]) if number + 1 < len(self.starts) else self.size
        went = self.gone[(self.gone >= low) & (self.gone < high)]
        # A name before the first row of a piece belongs after the last row of the piece before.
        own = np.searchsorted(self.starts[1:], self.before, side="left")
        return went, np.flatnonzero(own == number)

    def changes(self, number: int) -> bool:
        """Whether the names of a piece change."""
        return any(map(len, self._of_piece(number)))

    def runs(self, number: int, piece: Sequence[SegmentRun]) -> Iterator[RunChanges]:
        """The runs of a piece in order, each with its changes."""
        gone, came = self._of_piece(number)
        names = self.came.take(came)
        before = self.before[came]
        arrived = {
            (namespace, domain): (low, high)
            for namespace, domain, low, high in namespace_ranges(names["key"])
        }
        first = int(self.starts[number])
        now = first - int(np.searchsorted(self.gone, first))
        if number:  # a name before the first row of a piece is of the piece before
            now += int(np.searchsorted(self.before, first, side="right"))
        former: dict[_Place, tuple[SegmentRun, int]] = {}
        for run in piece:
            former[run.namespace, run.domain] = (run, first)
            first += len(run.names)
        for place in sorted(
            former.keys() | arrived.keys(), key=lambda one: (one[0], DOMAIN_ORDER.index(one[1]))
        ):
            low, high = arrived.get(place, (0, 0))
            known = former.get(place)
            start = 0 if known is None else known[1]
            stop = start if known is None else start + len(known[0].names)
            changes = RunChanges(
                *place,
                None if known is None else known[0],
                now,
                gone[(gone >= start) & (gone < stop)] - start,
                names.slice(low, high - low),
                before[low:high] - start if known is not None else np.zeros(high - low, np.int64),
            )
            now += changes.size
            yield changes

    def values(
        self, part: RunChanges, property_keys: Sequence[str]
    ) -> Mapping[str, pa.LargeStringArray] | None:
        """The values of the properties of a run of now, if all names are staged."""
        if self.all_values is None:
            return None
        own = (column.slice(part.first, part.size) for column in self.all_values)
        return dict(zip(property_keys, own, strict=True))


@dataclass(slots=True)
class _KeysOfRuns:
    """The keys of the names of neighbouring runs, made only for the rows that are asked for."""

    own: Sequence[SegmentRun]
    starts: Array = field(init=False)

    def __post_init__(self) -> None:
        self.starts = np.cumsum([0, *(len(run.names) for run in self.own)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def keys(self) -> pa.LargeBinaryArray:
        return pa.concat_arrays([order_key(run.namespace, run.domain, run.names.names) for run in self.own])

    def take(self, rows: pa.Int64Array) -> pa.LargeBinaryArray:
        wanted = rows.to_numpy()
        numbers = np.searchsorted(self.starts, wanted, side="right") - 1
        parts = [pa.array([], pa.large_binary())]
        for number in np.unique(numbers).tolist():
            run, own = self.own[number], wanted[numbers == number] - self.starts[number]
            fields = run.names.fields.take(pa.array(own))
            names = EncodedNames.decode(run.namespace, run.domain, fields, checked=True).names
            parts.append(order_key(run.namespace, run.domain, names))
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.argsort(numbers, kind="stable"))))


def _difference(former: pa.LargeBinaryArray, now: pa.LargeBinaryArray) -> tuple[Array, Array, Array] | None:
    """The rows of ascending ``former`` keys that are not in ascending ``now``, the rows of ``now`` that are new, and
    the former rows before which they come; ``None`` if there are many.
    """
    gone: list[int] = []
    came: list[int] = []
    before: list[int] = []
    at = row = 0
    while at < len(former) and row < len(now):
        size = min(_COMPARED, len(former) - at, len(now) - row)
        first = pc.index(pc.equal(former.slice(at, size), now.slice(row, size)), False).as_py()
        if first < 0:
            at, row = at + size, row + size
            continue
        at, row = at + first, row + first
        if former[at].as_py() < now[row].as_py():
            gone.append(at)
            at += 1
        else:
            came.append(row)
            before.append(at)
            row += 1
        if (len(gone) + len(came)) * _ALIKE > len(former) + _COMPARED:
            return None
    came += range(row, len(now))
    before += [len(former)] * (len(now) - row)
    gone += range(at, len(former))
    return np.array(gone, np.int64), np.array(came, np.int64), np.array(before, np.int64)
