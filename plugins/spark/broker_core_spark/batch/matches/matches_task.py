"""The task of a share of segments: reads them from the store, and writes the rows of their matches as Parquet files.

Files are written whole, and their names and bytes follow from the generation and the share, so a task may be killed,
repeated or run twice at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA, asked_columns, match_batches
from broker_core_spark.format.segment_reader import Segment
from broker_core_spark.store import open_store
from broker_core_spark.store.addressed_folder import AddressedFolder, addressed_folder
from broker_core_spark.store.read_manifest import read_manifest
from broker_core_spark.store.verified_files import fetch_verified

__all__ = ["MatchesOfShares", "WriteMatches"]

#: Rows of a row group at least, but for the last, and bytes after which a file ends.
_GROUP_ROWS: Final = 131_072
_FILE_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MatchesOfShares:
    """The rows of the matches of a generation, by share. A share has segments ``start`` to ``stop`` of the manifest."""

    store: str
    options: Mapping[str, str]
    generation: str
    published: datetime
    shares: tuple[tuple[int, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the shares whose numbers are in the first column: what Spark writes itself."""
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
        store = open_store(self.store, self.options)
        manifest = read_manifest(store, self.generation)
        entries = manifest.segments[start:stop]
        questions = fetch_verified(store, manifest.questions, None)
        asked = asked_columns(
            bytes(questions).splitlines(),
            {namespace for entry in entries for namespace, _, _ in entry.runs},
        )
        for entry in entries:
            names, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
            for run in Segment.open(names, entry.name, postings, entry.postings.name).runs():
                yield from match_batches(run, asked, self.generation, self.published)


@dataclass(frozen=True, slots=True)
class WriteMatches:
    """Writes each share into files of ``folder``, an address, by the options of the store.

    The result of a share is JSON: its rows, and its files with their sizes.
    """

    matches: MatchesOfShares
    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        folder = addressed_folder(self.folder, self.matches.options)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows, files = _written(folder, number, self.matches.rows(number))
                yield json.dumps({"rows": rows, "files": files}).encode()


def _written(
    folder: AddressedFolder, share: int, batches: Iterator[pa.RecordBatch]
) -> tuple[int, dict[str, int]]:
    """(rows, bytes of each file) of a share. A share without rows has an empty file, so that a table is there."""
    files: dict[str, int] = {}
    total = 0
    groups = _row_groups(batches)
    group = next(groups, MATCH_SCHEMA.empty_table())
    while group is not None:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, MATCH_SCHEMA, compression="zstd") as writer:
            while group is not None:
                writer.write_table(group)
                total += len(group)
                group = next(groups, None)
                if sink.tell() >= _FILE_BYTES:
                    break
        data = sink.getvalue().to_pybytes()
        name = f"part-{share:05}-{len(files):05}.parquet"
        folder.write(name, data)
        files[name] = len(data)
    return total, files


def _row_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table[Any]]:
    """Batches as tables of enough rows: those of small namespaces are joined."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
