"""A build of an unsorted table beside one of the same rows in order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker_core_spark.batch.job import BuildResult, build
from tests.benchmarks.progress import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["measure"]

#: The goal: seconds of the unsorted one as a multiple of the sorted one's.
_MOST: Final = 1.3
_TURNS: Final = 2
_ROW_GROUP: Final = 500_000


def measure(
    spark: SparkSession, catalogue: Path, patterns: Path, folder: Path, **options: Any
) -> list[dict[str, Any]]:
    """The row of :mod:`.goals`. Both are built in turns with ``options``, and the shorter time of each counts."""
    names = pq.read_table(catalogue).column("name").combine_chunks()
    rows = {
        "sorted": pc.sort_indices(names),
        "unsorted": pa.array(np.random.default_rng(3).permutation(len(names))),
    }
    for order, index in rows.items():
        table = pa.table({"name": names.take(index)})
        pq.write_table(table, folder / f"{order}.parquet", compression="zstd", row_group_size=_ROW_GROUP)
    del names, rows
    seconds: dict[str, list[float]] = {"sorted": [], "unsorted": []}
    generations: set[str] = set()
    for turn in range(_TURNS):
        for order, taken in seconds.items():
            say(f"a build of a table, {order}")
            result: BuildResult = build(
                spark,
                catalogue=str(folder / f"{order}.parquet"),
                patterns=str(patterns),
                store=str(folder / f"{order}-{turn}"),
                **options,
            )
            taken.append(result.seconds["total"])
            generations.add(result.generation)
    assert len(generations) == 1
    return [
        {"what": "a build of a sorted table", "value": min(seconds["sorted"]), "unit": "s"},
        {
            "what": "an unsorted table beside a sorted one",
            "value": min(seconds["unsorted"]) / min(seconds["sorted"]),
            "unit": "x",
            "at_most": _MOST,
        },
    ]
