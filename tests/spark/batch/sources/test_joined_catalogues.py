"""Several catalogues in one build: the topics of all of them, each once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.job import BuildResult, build
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_several_catalogues_have_the_topics_of_all(spark: SparkSession, tmp_path: Path) -> None:
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b", "pattern": ".*[02468]"}])
    names = [f"t-{number}" for number in range(40)]
    pq.write_table(pa.table({"name": names[:25]}), tmp_path / "first.parquet")
    (tmp_path / "names.txt").write_text("\n".join(names[20:]) + "\n", encoding="utf-8")

    def built(catalogue: Any, store: str, **more: Any) -> BuildResult:
        given: dict[str, Any] = {"patterns": str(patterns), "namespace": "a/b"}
        return build(spark, catalogue=catalogue, store=str(tmp_path / store), **given, **more)

    sources = [str(tmp_path / "first.parquet"), str(tmp_path / "names.txt")]
    result = built(sources, "store")
    alone = built(spark.createDataFrame(pa.table({"name": names})), "alone")
    assert result.generation == alone.generation
    assert (result.duplicates, result.catalogue) == (5, ", ".join(sources))
    assert (
        built([*sources, spark.createDataFrame(pa.table({"name": ["t-99"]}))], "store").manifest.topics == 41
    )
    again = built(sources, "store", incremental=True)
    assert (again.generation, again.full_because) == (result.generation, "")
    fill(tmp_path / "catalogue.sqlite", {"a/b": ["x"]})
    with pytest.raises(InvalidCatalogue, match="several catalogues are tables"):
        built([*sources, str(tmp_path / "catalogue.sqlite")], "store")
    with pytest.raises(InvalidCatalogue, match="no catalogue is given"):
        built([], "store")
