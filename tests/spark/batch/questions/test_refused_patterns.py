"""Patterns that brokers refuse, found on the driver and in tasks alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core_spark.batch.questions.refused_patterns import refused_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_find_what_the_driver_finds(spark: SparkSession) -> None:
    patterns = [f"a/b/x{number}.*" for number in range(50)] + ["(?=x)", "é*", "kafka://x", "a" * 40]
    here = refused_patterns(patterns, 30)
    assert set(here) == {"(?=x)", "kafka://x", "a" * 40}
    assert refused_patterns(patterns, 30, spark, many=1) == here
    assert refused_patterns(patterns, None, spark, many=1).keys() == {"(?=x)", "kafka://x"}
    assert refused_patterns([], 30, spark, many=1) == {}
