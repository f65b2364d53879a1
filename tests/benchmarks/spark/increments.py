"""Increments of a generation after changes, beside a full build, and the swaps to them, beside a first load."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.publish_gates import PublishGates
from tests.benchmarks.progress import say
from tests.benchmarks.spark import swaps
from tests.benchmarks.spark.catalogue import pattern_rows, write_catalogue, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["measure", "measure_commands"]

Row = dict[str, Any]
#: The topics and the patterns that the goals of increments are for.
_TOPICS: Final = 1_000_000
_PATTERNS: Final = 1000
#: Changed topics, and the goal of the increment's stage ``segments`` as a share of a full build's.
_CHANGES: Final = {1: 0.10, 10: 0.15, 1000: 0.35}
#: Each command is run after so many changes.
_TURNS: Final = 2
#: Changed topics that are all in a tenth of the names.
_NEIGHBOURS: Final = 100
#: The goals of the bytes and of the processor time of a swap after spread changes, and after changes in a tenth of the
#: segments, as shares of a first load's.
_SWAP: Final = 0.25
_SWAP_OF_NEIGHBOURS: Final = 0.15


def measure(spark: SparkSession, catalogue: Path, patterns: Path, folder: Path, **options: Any) -> list[Row]:
    """The rows of :mod:`.goals`. The Parquet file ``catalogue`` is changed. ``options`` are those of all builds.

    Swaps have goals. Those of increments are for other sizes: see :func:`measure_commands`.
    """

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

    rows: list[Row] = []
    pick = random.Random(1)
    full = result = built("increments", incremental=False)
    seconds = full.seconds["segments"]
    topics = full.manifest.topics
    rows.append({"what": f"a full build's stage segments, {topics:,} topics", "value": seconds, "unit": "s"})
    spread = [(f"{changed:,} spread changes", changed, 1.0, _SWAP) for changed in _CHANGES]
    near = ("changes in a tenth of the names", _NEIGHBOURS, 0.1, _SWAP_OF_NEIGHBOURS)
    made: dict[str, tuple[str, float]] = {}
    for what, changed, part, swap in (*spread, near):
        say(f"an increment after {what}")
        _change(catalogue, changed, pick, part)
        result = built("increments", incremental=True)
        share = result.seconds["segments"] / seconds
        rows.append({"what": f"an increment after {what}: its share of that", "value": share, "unit": ""})
        made[what] = (result.generation, swap)
    say("swaps")
    rows += swaps.measure(folder / "increments", folder, full.generation, made)
    whole = built("whole", incremental=False)
    rows.append(
        {
            "what": "the last increment equals a full build",
            "value": float(whole.generation == result.generation),
            "unit": "",
            "at_least": 1,
        }
    )
    return rows


def measure_commands(folder: Path, topics: int = _TOPICS, patterns: int = _PATTERNS) -> list[Row]:
    """Increments by ``broker-core spark build --incremental``, each a process, as an operator runs them."""
    catalogue, questions = folder / "command.parquet", folder / "command.jsonl"
    write_catalogue(catalogue, topics)
    write_patterns(questions, pattern_rows(patterns))

    def seconds(store: str, *options: str) -> float:
        command = [str(Path(sys.executable).with_name("broker-core")), "spark", "build", "--allow-shrink"]
        command += [
            "--catalogue",
            str(catalogue),
            "--patterns",
            str(questions),
            "--out",
            str(folder / store),
        ]
        done = subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE, text=True)
        return float(json.loads(done.stdout.splitlines()[-1])["seconds"]["segments"])

    wholes = [seconds("commands")]
    pick = random.Random(1)
    rows: list[Row] = []
    for changed, goal in _CHANGES.items():
        say(f"an incremental command after {changed:,} spread changes")
        shares = []
        for _ in range(_TURNS):
            _change(catalogue, changed, pick)
            # Beside a full build of the same table, whose new names are at its end, as those of an appended table.
            wholes.append(seconds("full", "--full"))
            shutil.rmtree(folder / "full")
            shares.append(seconds("commands", "--incremental") / wholes[-1])
        what = f"an incremental one after {changed:,} spread changes: its share"
        rows.append({"what": what, "value": mean(shares), "unit": "", "at_most": goal})
    size = f"{topics:,} topics x {patterns:,} patterns"
    rows.insert(0, {"what": f"stage segments of a command, {size}", "value": mean(wholes), "unit": "s"})
    return rows


def _change(catalogue: Path, count: int, pick: random.Random, part: float = 1.0) -> None:
    """Change so many topics: half of ``count`` names go, and as many come at other places; of one only the new one is.

    They are among neighbours in the order of names, which are this ``part`` of all.
    """
    table = pq.read_table(catalogue)
    order = pc.sort_indices(table["name"]).to_numpy()
    among = int(len(table) * part)
    low = pick.randrange(len(table) - among + 1)
    half = max(1, count // 2)
    rows = order[low + np.array(pick.sample(range(among), 2 * half))]
    stays = np.ones(len(table), bool)
    stays[rows[:half] if count > 1 else []] = False
    position = table.column_names.index("name")
    field = table.schema.field(position)
    own = table.take(pa.array(np.sort(rows[half:])))
    text = pa.large_string()
    words = (
        own.column(position).cast(text),
        pa.scalar(f"{pick.randrange(10**6)}", text),
        pa.scalar("-", text),
    )
    new = own.set_column(position, field, pc.binary_join_element_wise(*words).cast(field.type))
    pq.write_table(pa.concat_tables([table.filter(pa.array(stays)), new]), catalogue)
