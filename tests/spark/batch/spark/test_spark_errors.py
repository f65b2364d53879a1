"""The reason in an error of Spark, and no secret of the address that it is about."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.spark.spark_errors import failing_to_read, spark_message


def test_the_reason_follows_the_text_of_the_bridge() -> None:
    error = Py4JError("An error occurred while calling o1.x.\n: java.io.IOException: no disk\n\tat X")
    assert spark_message(error) == "java.io.IOException: no disk"
    assert spark_message(PySparkException("[NO_TABLE] none\nmore")) == "[NO_TABLE] none"
    assert spark_message(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("table:topics", "Cannot read the catalogue table:topics: [NO_TABLE] none at table:topics"),
        ("s3a://b/x.parquet?sig=secret", "Cannot read the catalogue s3a://b/x.parquet: [NO_TABLE]"),
    ],
)
def test_an_error_about_a_source_has_its_address_without_secrets(source: str, said: str) -> None:
    with pytest.raises(InvalidCatalogue) as caught, failing_to_read("catalogue", source, InvalidCatalogue):
        raise PySparkException(f"[NO_TABLE] none at {source}")
    assert str(caught.value) == said
    assert "secret" not in str(caught.value.__cause__)


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), failing_to_read("catalogue", "x", InvalidCatalogue):
        raise ZeroDivisionError
