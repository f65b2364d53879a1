"""The builder, also of a session that does not give its application."""

from __future__ import annotations

from broker_core_spark.batch.builder import Builder
from broker_core_spark.batch.progress.described_job import classic_context


def test_a_session_that_does_not_tell_has_no_application() -> None:
    assert classic_context(object()) is None  # type: ignore[arg-type]


def test_a_builder_is_said_in_one_line() -> None:
    builder = Builder("ann", "host1", 7, "run1", "0.1", "4.1.0", "3.12.0")
    assert str(builder) == "ann on host1, process 7"
    assert builder.application == ""
