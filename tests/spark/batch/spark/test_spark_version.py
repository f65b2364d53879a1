"""Versions of Spark that are not known to work are refused, and those of managed Sparks are read."""

from __future__ import annotations

import pytest

from broker_core_spark.batch.build_errors import SessionFailed
from broker_core_spark.batch.spark.spark_session import spark_session
from broker_core_spark.batch.spark.spark_version import check_spark_version


@pytest.mark.parametrize(
    "version", ["4.0.0", "4.0.5", "4.1.4", "4.2.1", "4.3.0", "4.1.0-amzn-1", "4.3.0.dev1"]
)
def test_tested_releases_pass(version: str) -> None:
    check_spark_version(version)


@pytest.mark.parametrize("version", ["3.5.9", "3.10.0", "4.4.0", "4.10.1", "5.0.0", "40.1", "unknown", ""])
def test_others_are_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(SessionFailed, match=r"runs on 4\.0 to 4\.3\. pip install"):
        check_spark_version(version)


def test_a_session_is_not_started_with_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(SessionFailed, match=r"PySpark is 3\.5\.9"), spark_session(master="local[1]"):
        pytest.fail("a session of a version that is refused")
