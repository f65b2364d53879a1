"""Names of datasets: the place and the name in it, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.batch.lineage.dataset_names import dataset_name


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("s3://lake/a/b.parquet", ("s3://lake", "a/b.parquet")),
        ("gs://lake", ("gs://lake", "/")),
        ("abfss://container@account/a?sig=secret", ("abfss://container@account", "a")),
        ("file:///a/b", ("file", "/a/b")),
        ("table:lake.topics", ("spark", "lake.topics")),
        ("postgresql://u@db/topics", ("postgres://db:5432", "topics.broker_core.batch_v1_topics")),
        (
            "postgresql://db:6432/topics?password=secret",
            ("postgres://db:6432", "topics.broker_core.batch_v1_topics"),
        ),
        ("postgresql://a@b@db/topics", ("postgres://...", "broker_core.batch_v1_topics")),
    ],
)
def test_names_by_kind(address: str, expected: tuple[str, str]) -> None:
    assert dataset_name(address) == expected


def test_a_relative_path_is_absolute() -> None:
    assert dataset_name("broker-core.sqlite") == ("file", str(Path.cwd() / "broker-core.sqlite"))
