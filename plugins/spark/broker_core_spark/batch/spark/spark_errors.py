"""Errors of Spark and of its bridge to Java, and the line of each that says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.source_redaction import redacted_message, redacted_source

__all__ = ["failing_to_read", "spark_errors", "spark_message"]


def spark_errors() -> tuple[type[Exception], ...]:
    """The errors of Spark and of its bridge to Java."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def spark_message(error: BaseException) -> str:
    """The line of a Spark error with the reason. In an error of Java it follows the bridge's own text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")[:1000]
    return lines[0][:1000] if lines else type(error).__name__


@contextmanager
def failing_to_read(what: str, source: str, kind: type[BatchError]) -> Iterator[None]:
    """Turns errors of Spark about a source into one of this kind, without secrets of the source's address."""
    try:
        yield
    except spark_errors() as error:
        shown = redacted_source(source)
        hidden = None if shown != source else error
        raise kind(
            f"Cannot read the {what} {shown}: {redacted_message(source, spark_message(error))}"
        ) from hidden
