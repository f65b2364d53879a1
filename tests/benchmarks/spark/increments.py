"""Increments of a generation after spread changes, and the swaps to them, each beside a full build and a first load."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker_core.memory import keep_freed_memory
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.publish_gates import PublishGates
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from broker_core_spark.store import Store, open_store
from tests.benchmarks.progress import say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["measure"]

Row = dict[str, Any]
_Made = TypeVar("_Made")
#: Changed topics, and the goal of the increment's stage ``segments`` as a share of a full build's.
_CHANGES: Final = {1: 0.10, 10: 0.15, 1000: 0.35}
#: Changed topics that are all in a tenth of the names.
_NEIGHBOURS: Final = 100
#: The goals of the bytes and of the processor time of a swap after spread changes, and after changes in a tenth of the
#: segments, as shares of a first load's.
_SWAP: Final = 0.25
_SWAP_OF_NEIGHBOURS: Final = 0.15
#: Each swap is made so many times: a broker draws at random which kept segments it verifies again.
_SWAPS: Final = 5


class _Counted:
    """A store that counts the bytes that are read of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.bytes = 0

    def fetch(self, path: str, size: int) -> Iterator[bytes]:
        self.bytes += size
        return self._store.fetch(path, size)

    def get(self, path: str, limit: int) -> bytes | None:
        data = self._store.get(path, limit)
        self.bytes += len(data or b"")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def measure(spark: SparkSession, catalogue: Path, patterns: Path, folder: Path, **options: Any) -> list[Row]:
    """The rows of :mod:`.goals`. The Parquet file ``catalogue`` is changed. ``options`` are those of all builds."""

    def built(store: str, *, incremental: bool) -> BuildResult:
        return build(
            spark,
            catalogue=str(catalogue),
            patterns=str(patterns),
            store=str(folder / store),
            incremental=incremental,
            gates=PublishGates(allow_shrink=True),
            **options,
        )

    keep_freed_memory()  # as a broker does, whose swaps are measured
    rows: list[Row] = []
    pick = random.Random(1)
    full = built("increments", incremental=False)
    store = open_store(str(folder / "increments"))
    seconds = full.seconds["segments"]
    first, loaded_bytes, loaded_seconds = _worked(partial(_opened, result=full, folder=folder), store)
    rows.append({"what": "a full build's stage segments", "value": seconds, "unit": "s"})
    rows.append({"what": "a first load", "value": loaded_bytes / 1e6, "unit": "MB"})
    rows.append({"what": "a first load, of a processor", "value": loaded_seconds, "unit": "s"})
    spread = [
        (f"{changed:,} spread changes", changed, 1.0, goal, _SWAP) for changed, goal in _CHANGES.items()
    ]
    near = ("changes in a tenth of the names", _NEIGHBOURS, 0.1, None, _SWAP_OF_NEIGHBOURS)
    for what, changed, part, goal, swap in (*spread, near):
        say(f"an increment after {what}")
        _change(catalogue, changed, pick, part)
        result = built("increments", incremental=True)
        share = result.seconds["segments"] / seconds
        rows.append(
            {"what": f"its share after {what}", "value": share, "unit": ""}
            | ({} if goal is None else {"at_most": goal})
        )
        swaps: list[list[float]] = []
        latest = first
        for seed in range(_SWAPS):
            latest = first  # lets the last one go: a broker holds two generations at a time
            latest, *figures = _worked(
                partial(_opened, result=result, folder=folder, before=first, seed=seed), store
            )
            swaps.append(figures)
        first = latest
        rows += [
            {
                "what": f"its share of a first load: {title}",
                "value": mean(values) / whole,
                "unit": "",
                "at_most": swap,
            }
            for title, values, whole in (
                ("bytes of the swap", [read for read, _ in swaps], loaded_bytes),
                ("processor time of the swap", [worked for _, worked in swaps], loaded_seconds),
            )
        ]
    whole = built("whole", incremental=False)
    rows.append(
        {
            "what": "the last increment equals a full build",
            "value": float(whole.generation == first.id),
            "unit": "",
            "at_least": 1,
        }
    )
    return rows


def _opened(
    store: Store, *, result: BuildResult, folder: Path, before: Generation | None = None, seed: int = 0
) -> Generation:
    checks = SampleChecks(seed=seed)
    return Generation.open(store, result.generation, directory=str(folder), checks=checks, before=before)


def _worked(made: Callable[[Store], _Made], store: Store) -> tuple[_Made, int, float]:
    """What was made, the bytes that were read for it, and the seconds that processors worked."""
    counted, began = _Counted(store), time.process_time()
    return made(cast(Store, counted)), counted.bytes, time.process_time() - began


def _change(catalogue: Path, count: int, pick: random.Random, part: float = 1.0) -> None:
    """Rename so many topics: half of ``count`` changed names go, and as many come; of one only the new one is.

    They are among neighbours in the order of names, which are this ``part`` of all.
    """
    table = pq.read_table(catalogue)
    order = pc.sort_indices(table["name"]).to_numpy()
    among = int(len(table) * part)
    low = pick.randrange(len(table) - among + 1)
    rows = np.sort(order[low + np.array(pick.sample(range(among), max(1, count // 2)))])
    stays = np.ones(len(table), bool)
    stays[rows if count > 1 else []] = False
    position = table.column_names.index("name")
    field = table.schema.field(position)
    own = table.take(pa.array(rows))
    text = pa.large_string()
    words = (
        own.column(position).cast(text),
        pa.scalar(f"{pick.randrange(10**6)}", text),
        pa.scalar("-", text),
    )
    new = own.set_column(position, field, pc.binary_join_element_wise(*words).cast(field.type))
    pq.write_table(pa.concat_tables([table.filter(pa.array(stays)), new]), catalogue)
