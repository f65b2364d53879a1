"""The batch: builds a verified generation from a catalogue and many patterns.

Serving imports nothing of it. PySpark is imported by the functions that use it. A task imports what it needs alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker_core_spark.batch.build_errors import InvalidPatterns
    from broker_core_spark.batch.build_result import BuildResult, OutputFailed
    from broker_core_spark.batch.followed_table import follow_table
    from broker_core_spark.batch.job import build
    from broker_core_spark.batch.progress.progress import Progress
    from broker_core_spark.batch.progress.shown_progress import ProgressLines, terminal_progress
    from broker_core_spark.batch.publish_gates import PublishGates, PublishRefused
    from broker_core_spark.batch.questions.load_questions import check_patterns, check_rows
    from broker_core_spark.batch.questions.parse_question_row import (
        ROW_KEYS,
        parse_json_line,
        parse_last_time,
        parse_question_row,
        refusal_reason,
    )
    from broker_core_spark.batch.reports.build_metrics import write_metrics
    from broker_core_spark.batch.source_address import is_of_spark
    from broker_core_spark.batch.source_redaction import redacted_source
    from broker_core_spark.batch.sources.open_catalogue import check_catalogue
    from broker_core_spark.batch.spark.spark_session import spark_session
    from broker_core_spark.batch.written_table import check_folder

__all__ = [
    "ROW_KEYS",
    "BuildResult",
    "InvalidPatterns",
    "OutputFailed",
    "Progress",
    "ProgressLines",
    "PublishGates",
    "PublishRefused",
    "build",
    "check_catalogue",
    "check_folder",
    "check_patterns",
    "check_rows",
    "follow_table",
    "is_of_spark",
    "parse_json_line",
    "parse_last_time",
    "parse_question_row",
    "redacted_source",
    "refusal_reason",
    "spark_session",
    "terminal_progress",
    "write_metrics",
]

_HOMES: Final = {
    "BuildResult": ".build_result",
    "InvalidPatterns": ".build_errors",
    "OutputFailed": ".build_result",
    "Progress": ".progress.progress",
    "ProgressLines": ".progress.shown_progress",
    "PublishGates": ".publish_gates",
    "PublishRefused": ".publish_gates",
    "ROW_KEYS": ".questions.parse_question_row",
    "build": ".job",
    "check_catalogue": ".sources.open_catalogue",
    "check_folder": ".written_table",
    "check_patterns": ".questions.load_questions",
    "check_rows": ".questions.load_questions",
    "follow_table": ".followed_table",
    "is_of_spark": ".source_address",
    "parse_json_line": ".questions.parse_question_row",
    "parse_last_time": ".questions.parse_question_row",
    "parse_question_row": ".questions.parse_question_row",
    "redacted_source": ".source_redaction",
    "refusal_reason": ".questions.parse_question_row",
    "spark_session": ".spark.spark_session",
    "terminal_progress": ".progress.shown_progress",
    "write_metrics": ".reports.build_metrics",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)
