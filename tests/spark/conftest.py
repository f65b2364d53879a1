"""The Spark session of the tests: two threads of one JVM, started when first needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """``local[2]``, shared by all tests of this process."""
    from broker_core_spark.batch.spark.spark_session import spark_session

    quick = {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m",
        "spark.sql.shuffle.partitions": "2",
    }
    with spark_session(master="local[2]", conf=quick, name="tests") as session:
        yield session
