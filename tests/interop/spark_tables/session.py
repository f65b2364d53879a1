"""A session of the PySpark that Iceberg and Delta have releases for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.interop.foreign import packages_of
from tests.interop.maven import PeerUnavailable, jars_of
from tests.support.quick_java import quick_java_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["tables_session"]

_HERE: Final = Path(__file__).resolve().parent
_CATALOG: Final = "spark.sql.catalog"


@contextmanager
def tables_session(folder: Path) -> Iterator[SparkSession]:
    """A session with the catalogue ``lake`` of Iceberg tables, and one of Delta tables; both below ``folder``.

    Raises :exc:`PeerUnavailable` if PySpark or the jars are not available.
    """
    jars = ",".join(map(str, sorted(jars_of(_HERE / "pom.xml").glob("*.jar"))))
    packages = packages_of(_HERE / "pyspark.txt")
    if any(name.partition(".")[0] == "pyspark" for name in sys.modules):
        raise PeerUnavailable("another PySpark is imported already: run this file of tests alone")
    settings = {
        "spark.jars": jars,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
        "io.delta.sql.DeltaSparkSessionExtension",
        f"{_CATALOG}.lake": "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.lake.type": "hadoop",
        f"{_CATALOG}.lake.warehouse": str(folder / "lake"),
        f"{_CATALOG}.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # Delta reads its log in 50 tasks otherwise.
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.memory": "1g",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(packages))
        patch.setenv("PYTHONPATH", str(packages))  # of the workers
        patch.setenv("SPARK_SUBMIT_OPTS", quick_java_options())
        patch.delenv("SPARK_HOME", raising=False)
        importlib.invalidate_caches()
        from broker_core_spark.batch.spark.spark_session import spark_session

        with spark_session(master="local[2]", conf=settings, name="tables") as session:
            session.sql("CREATE NAMESPACE lake.db")
            yield session
