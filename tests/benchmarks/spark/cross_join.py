"""The naive solution for comparison: names joined with patterns by ``rlike``, grouped by pattern.

It cannot be right: ``rlike`` is Java's dialect and searches, so the patterns are anchored here, and its answers are
compared by their counts if both dialects agree.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["cross_join"]


def cross_join(
    spark: SparkSession, catalogue: Path, patterns: Path
) -> tuple[float, Mapping[tuple[str, str], int]]:
    """(seconds, the number of matches by namespace and pattern)."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    began = time.monotonic()
    names = spark.read.parquet(str(catalogue)).select(
        F.regexp_extract("name", "^persistent://([^/]+/[^/]+)/", 1).alias("namespace"),
        F.expr("substring(name, 14)").alias("matched"),
    )
    requested = spark.read.json(str(patterns)).select(F.col("namespace").alias("about"), "pattern").distinct()
    joined = names.join(
        F.broadcast(requested), F.expr(r"namespace = about AND matched rlike concat('^(?:', pattern, ')$')")
    )
    rows = joined.groupBy("about", "pattern").agg(F.count("*").alias("found")).collect()
    return time.monotonic() - began, {(row["about"], row["pattern"]): row["found"] for row in rows}
