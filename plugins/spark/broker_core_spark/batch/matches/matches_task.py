"""The task of a share of segments: reads them from the store, and makes the rows of their matches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from broker_core_spark.batch.matches.match_rows import asked_columns, match_batches
from broker_core_spark.format import Segment
from broker_core_spark.store import fetch_verified, open_store, read_manifest

__all__ = ["MatchesOf", "MatchesOfShares"]


@dataclass(frozen=True, slots=True)
class MatchesOf:
    """The matches of a generation in a store with these options."""

    store: str
    options: Mapping[str, str]
    generation: str
    published: datetime


@dataclass(frozen=True, slots=True)
class MatchesOfShares:
    """The rows of the matches of a generation, by share. A share has segments ``start`` to ``stop`` of the manifest."""

    matches: MatchesOf
    shares: tuple[tuple[int, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the shares whose numbers are in the first column, which Spark writes itself."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.rows(number)

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of a share.

        Raises :exc:`~broker_core_spark.errors.InvalidGeneration` and :exc:`~broker_core_spark.errors.StoreFailed` for
        files of the generation that are damaged or cannot be read.
        """
        start, stop = self.shares[number]
        if start == stop:
            return
        store = open_store(self.matches.store, self.matches.options)
        manifest = read_manifest(store, self.matches.generation)
        entries = manifest.segments[start:stop]
        questions = fetch_verified(store, manifest.questions, None)
        asked = asked_columns(
            bytes(questions).splitlines(),
            {namespace for entry in entries for namespace, _, _ in entry.runs},
        )
        for entry in entries:
            names, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
            for run in Segment.open(names, entry.name, postings, entry.postings.name).runs():
                yield from match_batches(run, asked, self.matches.generation, self.matches.published)
