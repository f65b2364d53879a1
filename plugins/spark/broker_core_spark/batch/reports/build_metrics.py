"""Metrics of a build for Prometheus: a file for the textfile collector of node_exporter, or a push gateway."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final
from urllib.error import HTTPError, URLError

from prometheus_client import CollectorRegistry, Gauge, generate_latest, pushadd_to_gateway

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import addressed_file

__all__ = ["METRICS", "build_metrics", "write_metrics"]

#: The metrics and their meanings. All are gauges, and begin with ``broker_core_spark_build_``.
METRICS: Final[Mapping[str, str]] = {
    "succeeded": "1 if the last build ended with exit code 0: it published, and all that was asked for is written.",
    "ended_timestamp_seconds": "When the last build ended.",
    "published_timestamp_seconds": "When a build published last.",
    "seconds": "Seconds of each step of the build that published last.",
    "generation_number": "The number of its pointer.",
    "topics": "Topics of its generation.",
    "questions": "Questions of its generation.",
    "matches": "Topics of all answers together.",
    "refused": "Patterns that it refused.",
    "left_out": "Questions of namespaces that the catalogue does not have.",
    "coverage_ratio": "The share of what was asked that is precomputed.",
    "segments_written": "Segments that it wrote.",
    "segments_kept": "Segments that it kept of the generation before.",
    "rows_left_out": "Rows of the catalogue that its condition leaves out.",
}
_PREFIX: Final = "broker_core_spark_build_"
#: A build that a signal ends has little time.
_TIMEOUT: Final = 5.0


def build_metrics(result: BuildResult | None, *, succeeded: bool = True) -> CollectorRegistry:
    """The metrics of a build. For a build that did not publish (``None``), only its failure and its end.

    A build that published has not ``succeeded`` if something failed after that.
    """
    registry = CollectorRegistry()
    values: dict[str, float | None] = {
        "succeeded": float(succeeded and result is not None),
        "ended_timestamp_seconds": time.time(),
    }
    if result is not None:
        values |= {
            "published_timestamp_seconds": result.published.timestamp(),
            "generation_number": result.number,
            "topics": result.manifest.topics,
            "questions": len(result.totals),
            "matches": result.totals.matches,
            "refused": len(result.refused),
            "left_out": len(result.left_out),
            "coverage_ratio": result.coverage,
            "segments_written": result.segments_written,
            "segments_kept": result.segments_kept,
            "rows_left_out": result.rows_left_out,
        }
        steps = Gauge(f"{_PREFIX}seconds", METRICS["seconds"], ["step"], registry=registry)
        for step, seconds in result.seconds.items():
            steps.labels(step).set(seconds)
    for name, value in values.items():
        if value is not None:
            Gauge(f"{_PREFIX}{name}", METRICS[name], registry=registry).set(value)
    return registry


def write_metrics(
    address: str,
    result: BuildResult | None,
    options: Mapping[str, str] | None = None,
    *,
    succeeded: bool = True,
) -> None:
    """Push the metrics to a gateway, or replace a file with them. A gateway keeps metrics that a build does not have.

    Raises :exc:`BatchError`, which says that the generation is published, if it is.
    """
    registry = build_metrics(result, succeeded=succeeded)
    published = "" if result is None else "; the generation is published"
    try:
        if address.startswith(("http://", "https://")):
            pushadd_to_gateway(address, "broker_core_spark_build", registry, timeout=_TIMEOUT)
        else:
            addressed_file(address, options).write(generate_latest(registry))
    except StoreFailed as error:
        raise BatchError(f"Cannot write the metrics {error}{published}") from error
    except (OSError, ValueError) as error:
        cause = error.reason if isinstance(error, URLError) and isinstance(error.reason, OSError) else error
        said = str(cause) if redacted_source(address) == address else type(error).__name__
        if isinstance(error, HTTPError):
            error.close()  # it is the answer too, and keeps the connection open
        raise BatchError(
            f"Cannot push the metrics to {redacted_source(address)}: {said}{published}"
        ) from error
