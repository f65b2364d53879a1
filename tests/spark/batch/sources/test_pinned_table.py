"""Tables at one version: how a source says which."""

from __future__ import annotations

import pytest

from broker_core_spark.batch.sources.pinned_table import name_and_version


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("lake.db.topics", ("lake.db.topics", None)),
        ("lake.db.topics VERSION AS OF 7", ("lake.db.topics", 7)),
        (
            "delta.`/data/topics` version  as of 8720591709190680059",
            ("delta.`/data/topics`", 8720591709190680059),
        ),
        ("topics VERSION AS OF yesterday", ("topics VERSION AS OF yesterday", None)),
        (" VERSION AS OF 7", (" VERSION AS OF 7", None)),
    ],
)
def test_the_version_is_said_as_in_sql(table: str, expected: tuple[str, int | None]) -> None:
    assert name_and_version(table) == expected
