"""Matching the patterns and properties of selectors over a column of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.segments.staged_selectors import KeyedSelectors
from broker_core_spark.format import ANY_LENGTH, Matches, NameSelector, PostingsCollector, RunPostings

__all__ = ["Compiled", "collected_matches", "compiled_patterns", "match_selectors"]

Compiled: TypeAlias = Callable[[str], TopicsPattern]


def compiled_patterns() -> Compiled:
    """The compiled pattern of each text without scheme, for one task. The core remembers fewer."""
    return cache(partial(compile_pattern, max_length=ANY_LENGTH))


def collected_matches(
    names: EncodedNames,
    values: Mapping[str, pa.LargeStringArray],
    selectors: KeyedSelectors,
    compiled: Compiled,
    bounds: Sequence[int] | None = None,
) -> tuple[Array, Iterator[RunPostings]]:
    """The entry of each selector over all names, and the postings of each run between ``bounds``.

    They are as :class:`~broker_core_spark.format.PostingsCollector` gives them.
    """
    collected = PostingsCollector(names, bounds)
    for key, found in match_selectors(names, values, selectors, compiled):
        collected.add(key, found)
    return collected.finish()


def match_selectors(
    names: EncodedNames,
    values: Mapping[str, pa.LargeStringArray],
    selectors: KeyedSelectors,
    compiled: Compiled,
) -> Iterator[tuple[bytes, Matches]]:
    """The names that each selector picks, by the selector's key.

    ``values`` are columns of properties with one value a name (null: none). Names are matched once a pattern, whatever
    the number of selectors with it.
    """
    by_text: dict[str, list[tuple[bytes, NameSelector]]] = {}
    masks: dict[tuple[str, str], Array] = {}
    for key, selector in selectors:
        if selector.pattern is None:
            yield key, _selected((0, len(names)), selector, values, masks)
        else:
            by_text.setdefault(selector.pattern, []).append((key, selector))
    if not by_text:
        return
    texts = list(by_text)
    for index, found in names.matching_each([compiled(text) for text in texts]):
        small = found if isinstance(found, tuple) else found.astype(np.uint32, copy=False)
        for key, selector in by_text[texts[index]]:
            yield key, _selected(small, selector, values, masks)


def _selected(
    found: Matches,
    selector: NameSelector,
    values: Mapping[str, pa.LargeStringArray],
    masks: dict[tuple[str, str], Array],
) -> Matches:
    """The matches that have all properties of the selector."""
    for pair in selector.properties:
        mask = masks.get(pair)
        if mask is None:
            equal = pc.fill_null(pc.equal(values[pair[0]], pa.scalar(pair[1], pa.large_string())), False)
            mask = masks[pair] = equal.to_numpy(zero_copy_only=False)
        if isinstance(found, tuple):
            found = (np.flatnonzero(mask[found[0] : found[1]]) + found[0]).astype(np.uint32)
        else:
            found = found[mask[found]]
    return found
