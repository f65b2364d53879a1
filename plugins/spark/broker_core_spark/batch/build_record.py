"""The record of a build: builder, times, how long it took, and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["build_record"]

#: The version of the record, raised when a key changes its meaning.
_VERSION: Final = 1


def build_record(result: BuildResult) -> Mapping[str, Any]:
    """The record of a build that has published."""
    return {
        "version": _VERSION,
        "builder": result.builder.record() if result.builder else None,
        "began": _text(result.began),
        "published": _text(result.published),
        "patterns": result.patterns,
        "incremental": result.incremental,
        "task_seconds": [round(seconds, 3) for seconds in sorted(result.task_seconds)[-1000:]],
    } | {key: value for key, value in result.record().items() if key not in ("refused_patterns", "store")}


def _text(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()
