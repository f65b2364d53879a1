"""The kind of catalogue that an address opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.errors import BrokerCoreError
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.sources.names_file import NamesSource
from broker_core_spark.batch.sources.open_catalogue import check_catalogue, open_catalogue
from broker_core_spark.batch.sources.parquet_and_tables import TableSource
from broker_core_spark.batch.sources.postgres_database import PostgresSource
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_SPARK = cast(Any, None)  # nothing is read before a snapshot


def test_addresses(tmp_path: Path) -> None:
    fill(tmp_path / "catalogue.bin", {"a/b": ["x"]})
    (tmp_path / "names").write_text("x\n", encoding="utf-8")
    (tmp_path / "new.sqlite").write_bytes(b"")

    def kind(source: str) -> type:
        return type(open_catalogue(source, spark=NO_SPARK, namespace="a/b"))

    assert kind(str(tmp_path / "catalogue.bin")) is EmbeddedSource  # by its content
    assert kind((tmp_path / "catalogue.bin").as_uri()) is EmbeddedSource
    assert kind(str(tmp_path / "new.sqlite")) is EmbeddedSource  # by its name; reading refuses it
    assert kind(str(tmp_path / "names")) is NamesSource
    assert kind("postgresql://host/db") is kind("postgres://host/db") is PostgresSource
    assert (
        kind("table:a.b.c") is kind("s3a://bucket/topics.parquet") is kind("folder.parquet/") is TableSource
    )


def test_addresses_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("x\n", encoding="utf-8")
    for source, message in {
        str(tmp_path / "missing"): "There is no catalogue",
        str(tmp_path / "names"): "--namespace",
        str(tmp_path): "is a folder",
        "mysql://host/db": "No catalogue of the kind 'mysql'",
    }.items():
        with pytest.raises(InvalidCatalogue, match=message):
            open_catalogue(source, spark=NO_SPARK)
        with pytest.raises(InvalidCatalogue, match=message):
            check_catalogue(source)


def test_what_is_known_before_spark_starts(tmp_path: Path) -> None:
    fill(tmp_path / "catalogue.sqlite", {"a/b": ["x"]})
    (tmp_path / "names").write_text("x\n", encoding="utf-8")
    for source in ("postgresql://host/db", "table:a.b.c", str(tmp_path / "catalogue.sqlite")):
        check_catalogue(source)
    check_catalogue(str(tmp_path / "names"), namespace="a/b")
    for source in (str(tmp_path / "names"), "table:a.b.c"):
        with pytest.raises(BrokerCoreError, match="namespace"):
            check_catalogue(source, namespace="a")


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
    with pytest.raises(InvalidCatalogue, match=r"catalogue\.sqlite is built alone.*: several catalogues are"):
        built([*sources, str(tmp_path / "catalogue.sqlite")], "store")
    with pytest.raises(InvalidCatalogue, match=r"^postgresql://host/topics is built alone"):
        built([sources[0], "postgresql://reader@host/topics"], "store")
    with pytest.raises(InvalidCatalogue, match="no catalogue is given"):
        built([], "store")
