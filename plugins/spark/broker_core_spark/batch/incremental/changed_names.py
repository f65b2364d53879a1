"""The changes of the names of a stretch, run by run: deleted rows, new names, and their places.

Either the names that may have changed are known, and are looked for among the former ones. Or all present names are
staged, and compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.staging.order_keys import (
    first_row,
    namespace_ranges,
    order_key,
    segment_ids,
)
from broker_core_spark.batch.staging.sorted_runs import keyed_names
from broker_core_spark.format import SegmentRun

__all__ = ["NameChanges", "RunChanges", "run_changes"]

#: Former names that are compared together.
_COMPARED: Final = 1024


def _no_names() -> pa.RecordBatch:
    return keyed_names(pa.array([], pa.large_binary()))


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The staged names of a stretch, in order, each once: those with ``keys``, which may have changed, or all of them.

    ``keys`` are ``None`` for all. ``twice`` counts the names that were staged more than once. ``digest`` is that of all
    staged names, ``before`` that of the former ones. Both are empty if they are not known.
    """

    keys: tuple[bytes, ...] | None = ()
    staged: pa.RecordBatch = field(default_factory=_no_names)
    twice: int = 0
    digest: str = ""
    before: str = ""

    @property
    def none(self) -> bool:
        """Whether the names are surely the former ones."""
        return self.keys == () or "" != self.digest == self.before


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of a run: the former one if there was one, its rows that went, and the names that came.

    They come in front of the rows ``before``. ``properties`` are those of all names of now, if all are staged.
    """

    place: tuple[str, str]
    former: SegmentRun | None
    gone: Array
    came: pa.RecordBatch
    before: Array
    properties: tuple[pa.LargeStringArray, ...] = ()

    @property
    def size(self) -> int:
        """The current names."""
        return (0 if self.former is None else len(self.former.names)) - len(self.gone) + len(self.came)

    @property
    def changes(self) -> bool:
        """Whether names went or came."""
        return bool(len(self.gone) or len(self.came))


def run_changes(
    firsts: Sequence[bytes], pieces: Sequence[Sequence[SegmentRun]], changes: NameChanges
) -> list[list[RunChanges]]:
    """The changes of the runs of each piece of a stretch, in order. ``firsts`` are the pieces' former first keys."""
    staged = changes.staged
    changed = None if changes.keys is None else pa.array(changes.keys, pa.large_binary())
    # A name in front of the first one of a piece is of the piece before.
    bounds = [0, *(first_row(staged["key"], first) for first in firsts[1:]), len(staged)]
    return [
        list(_of_piece(piece, staged.slice(low, high - low), changed))
        for piece, (low, high) in zip(pieces, pairwise(bounds), strict=True)
    ]


def _of_piece(
    piece: Sequence[SegmentRun], staged: pa.RecordBatch, changed: pa.LargeBinaryArray | None
) -> Iterator[RunChanges]:
    former = {(run.namespace, run.domain): run for run in piece}
    now = _rows_by_place(staged["key"])
    may_change = None if changed is None else _rows_by_place(changed)
    none = np.empty(0, np.int64)
    for place in sorted(former.keys() | now.keys()):  # as names are: non-persistent before persistent
        run, own = former.get(place), staged.slice(*now.get(place, (0, 0)))
        if may_change is not None and place not in may_change:
            yield RunChanges(place, run, none, own, none)
            continue
        keys = order_key(*place, pa.array([], pa.large_string()) if run is None else run.names.names)
        if changed is None:
            gone, new = _difference(keys, own["key"])
            came = own.take(new)
            yield RunChanges(place, run, gone, came, segment_ids(keys, came["key"]), tuple(own.columns[1:]))
        else:
            gone = _true_rows(pc.is_in(keys, changed))
            yield RunChanges(place, run, gone, own, segment_ids(keys, own["key"]))


def _rows_by_place(keys: pa.LargeBinaryArray) -> dict[tuple[str, str], tuple[int, int]]:
    """The first row and the number of rows of each namespace and domain."""
    return {(namespace, domain): (low, high - low) for namespace, domain, low, high in namespace_ranges(keys)}


def _difference(former: pa.LargeBinaryArray, now: pa.LargeBinaryArray) -> tuple[Array, Array]:
    """The rows of ``former`` keys that are not in ``now``, and the rows of ``now`` that are new. Both ascend."""
    gone, came = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    edges = [0, *range(_COMPARED, len(former), _COMPARED), len(former)]
    lasts = pa.array([edge - 1 for edge in edges[1:-1]], pa.int64())
    begins = [0, *segment_ids(now, former.take(lasts)).tolist(), len(now)]
    for (low, high), (begin, end) in zip(pairwise(edges), pairwise(begins), strict=True):
        one, other = former[low:high], now[begin:end]
        if not one.equals(other):
            at = pc.index_in(other, one)
            known = at.drop_null().to_numpy()
            gone.append(low + np.setdiff1d(np.arange(len(one)), known, assume_unique=True))
            came.append(begin + _true_rows(at.is_null()))
    return np.concatenate(gone), np.concatenate(came)


def _true_rows(mask: pa.BooleanArray) -> Array:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))
