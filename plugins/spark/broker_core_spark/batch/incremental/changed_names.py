"""The changes of the names of a stretch, run by run: deleted rows, new names, and their places.

Either the names that may have changed are known, and are looked for among the former ones. Or all present names are
staged, and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.staging.order_keys import (
    NEXT,
    first_row,
    key_at,
    namespace_ranges,
    order_key,
    segment_ids,
)
from broker_core_spark.batch.staging.sorted_runs import keyed_names
from broker_core_spark.format import SegmentRun

__all__ = ["NameChanges", "RunChanges", "run_changes"]

#: Former names whose keys are made together, and those that are compared together.
_KEYED: Final = 16_384
_COMPARED: Final = 1024


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The staged names of a stretch, in order, each once: those with ``keys``, which may have changed, or all of them.

    ``keys`` are ``None`` for all. ``twice`` counts the names that were staged more than once. ``digest`` is that of all
    staged names, ``before`` that of the former ones. Both are empty if they are not known.
    """

    keys: tuple[bytes, ...] | None = ()
    staged: pa.RecordBatch = field(default_factory=lambda: keyed_names(pa.array([], pa.large_binary())))
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
        gone, came, before = _moves(
            place, EncodedNames.of(*place, []) if run is None else run.names, own["key"], changed
        )
        yield RunChanges(
            place, run, gone, own.take(came), before, tuple(own.columns[1:]) if changed is None else ()
        )


def _rows_by_place(keys: pa.LargeBinaryArray) -> dict[tuple[str, str], tuple[int, int]]:
    """The first row and the number of rows of each namespace and domain."""
    return {(namespace, domain): (low, high - low) for namespace, domain, low, high in namespace_ranges(keys)}


def _moves(
    place: tuple[str, str],
    former: EncodedNames,
    now: pa.LargeBinaryArray,
    changed: pa.LargeBinaryArray | None,
) -> tuple[Array, Array, Array]:
    """The rows of ``former`` names that went, the rows of the keys ``now`` that came, and the former rows before which
    they come. All ascend.

    With ``changed`` keys, which include ``now``, these names went, and all of ``now`` came.
    """
    gone, came, before = ([np.empty(0, np.int64)] for _ in range(3))
    # In parts: the keys of all names at once would be fresh memory, which takes longer than making them.
    for low, keys, begin, part in _parts(
        lambda low, high: order_key(*place, former.slice(low, high).names), len(former), now, _KEYED
    ):
        if changed is None:
            went, new = _difference(keys, part)
        else:
            went, new = _true_rows(pc.is_in(keys, changed)), np.arange(len(part))
        gone.append(low + went)
        came.append(begin + new)
        before.append(low + segment_ids(keys, part.take(pa.array(new))))
    return np.concatenate(gone), np.concatenate(came), np.concatenate(before)


def _difference(former: pa.LargeBinaryArray, now: pa.LargeBinaryArray) -> tuple[Array, Array]:
    """The rows of ``former`` keys that are not in ``now``, and the rows of ``now`` that are new. Both ascend."""
    gone, came = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for low, one, begin, other in _parts(lambda low, high: former[low:high], len(former), now, _COMPARED):
        if not one.equals(other):
            # What is alike at both ends is left out: looking names up takes some ten times as long.
            head, tail = _alike_ends(one, other)
            left = one[head : len(one) - tail]
            at = pc.index_in(other[head : len(other) - tail], left)
            stays = np.zeros(len(left), bool)
            stays[at.drop_null().to_numpy()] = True
            gone.append(low + head + np.flatnonzero(~stays))
            came.append(begin + head + _true_rows(at.is_null()))
    return np.concatenate(gone), np.concatenate(came)


def _parts(
    former: Callable[[int, int], pa.LargeBinaryArray], rows: int, now: pa.LargeBinaryArray, size: int
) -> Iterator[tuple[int, pa.LargeBinaryArray, int, pa.LargeBinaryArray]]:
    """The first row and the keys of each ``size`` former names, and the first row and the keys of the names of now up
    to the last one of them.

    ``former`` gives the keys of a range of the former ``rows``.
    """
    begin = 0
    for low in range(0, max(rows, 1), size):
        keys = former(low, min(low + size, rows))
        end = begin + len(keys)
        if low + size >= rows:
            end = len(now)
        elif end > len(now) or key_at(now, end - 1) != key_at(keys, size - 1):  # else as many came as went
            end = first_row(now, key_at(keys, size - 1) + NEXT, begin)
        yield low, keys, begin, now[begin:end]
        begin = end


def _alike_ends(one: pa.LargeBinaryArray, other: pa.LargeBinaryArray) -> tuple[int, int]:
    """The number of equal values at the beginning of two columns, and of further ones at their end."""
    least = min(len(one), len(other))
    equal = pc.equal(one[:least], other[:least]).to_numpy(zero_copy_only=False)
    head = int(np.argmin(np.append(equal, False)))
    equal = pc.equal(one[len(one) - least :], other[len(other) - least :]).to_numpy(zero_copy_only=False)
    return head, min(int(np.argmin(np.append(equal[::-1], False))), least - head)


def _true_rows(mask: pa.BooleanArray) -> Array:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))
