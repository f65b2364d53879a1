"""Putting changes into an answer: the topics to remove and to add, and the patched answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker_core import Selection
from broker_core.patterns import TopicsPattern
from broker_core_spark.serving.changes.overlay import Overlay

__all__ = ["AnswerPatch", "patch_for", "patched"]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class AnswerPatch:
    """The changes of one answer.

    ``removed`` are positions in the answer, ascending. ``added`` are rows of the overlay, ascending. Each is inserted
    in front of its position ``added_before``.
    """

    removed: _Array
    added: _Array
    added_before: _Array


def patch_for(
    base: Selection, first_row: int, overlay: Overlay, rows: _Array, properties: Mapping[str, str]
) -> AnswerPatch | None:
    """The changes that turn ``base`` into the current answer, or ``None`` for none.

    ``rows`` are the rows of the overlay that the question's mode and pattern match. ``first_row`` is the row of the
    generation's listing of mode ``ALL`` where the listing of ``base`` begins.
    """
    if not len(rows):
        return None
    places = overlay.base_rows[rows] - first_row
    if base.is_slice:
        low, high = base.bounds
        at = np.clip(places - low, 0, len(base))
        inside = overlay.in_base[rows] & (places >= low) & (places < high)
    else:
        own = base.row_array  # not empty: an empty selection is a slice
        at = np.searchsorted(own, places)
        inside = overlay.in_base[rows] & (own[np.minimum(at, len(own) - 1)] == places)
    shown = overlay.listed_with(rows, properties)
    gone, fresh = inside & ~shown, shown & ~inside
    if not gone.any() and not fresh.any():
        return None
    return AnswerPatch(at[gone], rows[fresh], at[fresh])


def patched(
    base: Selection, overlay: Overlay, patch: AnswerPatch, pattern: TopicsPattern | None
) -> Selection:
    """The patched answer, in a listing of its own.

    ``pattern`` is the question's. The core matches the added names too, so the answer needs no verification.
    """
    added = overlay.names.rows(patch.added)
    return base.spliced(
        patch.removed, patch.added_before, added if pattern is None else added.matching(pattern)
    )
