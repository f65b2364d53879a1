"""Matching a sample of a generation again by RE2: a checksum does not say that postings are right."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np

from broker_core.errors import InvalidPattern
from broker_core.patterns import compile_pattern
from broker_core_spark.arrow_columns import Array
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import ANY_LENGTH, NameSelector, SegmentRun

__all__ = ["rematch_sample"]

#: Names of a run that a selector is tried on: so many picked ones, and so many of all.
_NAMES: Final = 32


def rematch_sample(
    run: SegmentRun,
    selectors: Sequence[NameSelector],
    random: Random,
    sample: int,
    among: Array | None = None,
) -> None:
    """Match ``sample`` of the run's selectors again, each on a few names, and on some of the rows ``among``, or of all.

    Picked names must match. Other names must not, except for selectors with properties, which segments do not have.
    Raises :exc:`InvalidGeneration` for the first wrong one.
    """
    every = np.arange(len(run.names)) if among is None else among
    for selector in random.sample(selectors, min(sample, len(selectors))):
        picked = run.postings.rows(selector.key)
        rows = np.concatenate([_some(picked, random), _some(every, random)])
        matches = (
            np.ones(len(rows), bool) if selector.pattern is None else _matches(run, selector.pattern, rows)
        )
        is_picked = np.isin(rows, picked)
        wrong, missing = rows[is_picked & ~matches], rows[matches & ~is_picked]
        if len(wrong):
            raise _refused(run, int(wrong[0]), selector, "is picked by", "does not match it")
        if len(missing) and not selector.properties:
            raise _refused(run, int(missing[0]), selector, "is not picked by", "matches it")


def _some(rows: Array, random: Random) -> Array:
    """A few of the rows, drawn at random."""
    return rows[[random.randrange(len(rows)) for _ in range(min(_NAMES, len(rows)))]]


def _matches(run: SegmentRun, text: str, rows: Array) -> Array:
    try:
        # Patterns of this check are not remembered: a single survivor would keep the memory of opening.
        pattern = compile_pattern(text, max_length=ANY_LENGTH, remember=False)
        found = pattern.match_column(run.names.matched_at(rows))
    except InvalidPattern as error:
        raise InvalidGeneration(
            run.postings_file, f"a pattern that RE2 does not run was precomputed: {error}"
        ) from None
    result: Array = found.to_numpy(zero_copy_only=False)
    return result


def _refused(run: SegmentRun, row: int, selector: NameSelector, is_what: str, but: str) -> InvalidGeneration:
    name = run.names.names[row].as_py()
    return InvalidGeneration(
        run.postings_file,
        f"the topic {name!r:.200} of {run.namespace} {is_what} {selector.pattern!r:.200}, but {but}",
    )
