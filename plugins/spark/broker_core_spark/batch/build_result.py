"""The result of a build: the published generation, the results of its questions, and its builder."""

from __future__ import annotations

import os
import platform
import socket
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.generation_differences import GenerationDifferences
from broker_core_spark.batch.matches_export import matches_frame
from broker_core_spark.batch.progress.described_job import classic_context
from broker_core_spark.batch.questions.load_questions import LoadedQuestions, RefusedPattern
from broker_core_spark.batch.segments.question_totals import QuestionTotals
from broker_core_spark.format import CanonicalQuestion, Manifest
from broker_core_spark.store import user_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["HISTORY_SCHEMA", "TOTALS_SCHEMA", "BuildResult", "OutputFailed", "this_builder"]

TOTALS_SCHEMA: Final = pa.schema(
    [
        ("namespace", pa.string()),
        ("mode", pa.string()),
        ("pattern", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("count", pa.int64()),
        ("hash", pa.string()),
        ("version", pa.int64()),
        ("generation", pa.string()),
        ("number", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
    ]
)
HISTORY_SCHEMA: Final = pa.schema(
    [
        ("generation", pa.string()),
        ("number", pa.int64()),
        ("published", pa.timestamp("us", "UTC")),
        ("began", pa.timestamp("us", "UTC")),
        ("seconds", pa.float64()),
        ("user", pa.string()),
        ("host", pa.string()),
        ("application", pa.string()),
        ("catalogue", pa.string()),
        ("patterns", pa.string()),
        ("incremental", pa.bool_()),
        ("topics", pa.int64()),
        ("namespaces", pa.int64()),
        ("questions", pa.int64()),
        ("matches", pa.int64()),
        ("refused", pa.int64()),
        ("left_out", pa.int64()),
        ("coverage", pa.float64()),
        ("added", pa.int64()),
        ("removed", pa.int64()),
        ("changed", pa.int64()),
        ("segments_written", pa.int64()),
        ("segments_kept", pa.int64()),
        ("rows_left_out", pa.int64()),
    ]
)
#: Refused patterns, unknown namespaces and ignored properties of the result line. The report has more of them.
_SHOWN: Final = 20


class OutputFailed(BatchError):
    """The generation is published, and something after it failed: its record, the report, a table or an export.

    ``result`` is that of the build.
    """

    def __init__(self, message: str, result: BuildResult) -> None:
        super().__init__(f"{message.removesuffix('.')}; the generation is published")
        self.result = result


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of a build. ``totals`` are in the order of the questions.

    ``seconds`` are by step, ``task_seconds`` the processor's for each task that made segments. ``patterns`` is the
    source of questions without secrets. ``builder`` is that of :func:`this_builder`. ``differences`` are the ones to
    the generation before, if it could be read.
    """

    generation: str
    number: int
    store: str
    catalogue: str
    manifest: Manifest
    totals: QuestionTotals
    loaded: LoadedQuestions
    left_out: tuple[CanonicalQuestion, ...]
    staged: int
    duplicates: int
    system_topics: int
    segments_written: int
    segments_kept: int
    tasks: int
    builder: Mapping[str, Any]
    began: datetime
    published: datetime
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: Rows of the catalogue that the condition of the build leaves out.
    rows_left_out: int = 0
    task_seconds: tuple[float, ...] = ()
    patterns: str = ""
    incremental: bool = False
    #: The reason why an incremental build kept nothing of the published generation; empty if it did, or there was none.
    full_because: str = ""
    differences: GenerationDifferences | None = None
    #: Kept segments whose postings are new, because their namespaces are asked other questions.
    postings_written: int = 0
    #: Why the gates could not compare with the published generation.
    not_compared: str = ""
    #: A line for each kind of thing that was refused, ignored or left out, for people.
    notes: tuple[str, ...] = ()
    #: The folder of the exported matches, without secrets.
    matches_export: str = ""

    @property
    def times_covered(self) -> int:
        """The number of times that the precomputed questions were asked, of ``loaded.total_times``."""
        return sum(self.loaded.times.get(question, 0) for question in self.totals.questions)

    @property
    def coverage(self) -> float | None:
        """The share of asked questions that is precomputed, or ``None`` if nothing was asked.

        Refused patterns are not covered, nor are questions of namespaces that the catalogue does not have.
        """
        total = self.loaded.total_times
        return self.times_covered / total if total else None

    @property
    def refused(self) -> tuple[RefusedPattern, ...]:
        """The questions that were not precomputed, with their reasons."""
        return self.loaded.refused

    def totals_table(self) -> pa.Table:
        """A row for each question. The pattern is without scheme (null: all topics). The version is its namespace's.

        Every row has the generation, its number and the time of its publication.
        """
        versions, totals = self.manifest.namespaces, self.totals
        selectors = [question.selector for question in totals.questions]
        columns = {
            "namespace": [question.namespace for question in totals.questions],
            "mode": [question.mode.name for question in totals.questions],
            "pattern": [selector.pattern for selector in selectors],
            "properties": [list(selector.properties) for selector in selectors],
            "count": totals.counts,
            "hash": [total.topics_hash for total in totals],
            "version": [versions[question.namespace] for question in totals.questions],
            "generation": pa.repeat(self.generation, len(totals)),
            "number": pa.repeat(self.number, len(totals)),
            "published": [self.published] * len(totals),
        }
        return pa.Table.from_pydict(columns, schema=TOTALS_SCHEMA)

    def history_table(self) -> pa.Table:
        """The table with the row of a build."""
        record = self.record()
        row = {
            **(record["differences"] or {}),
            **self.builder,
            **record,
            "published": self.published,
            "began": self.began,
            "seconds": self.seconds["total"],
            "patterns": self.patterns,
            "incremental": self.incremental,
            "left_out": len(self.left_out),
        }
        return pa.Table.from_pylist([row], schema=HISTORY_SCHEMA)

    def totals_frame(self, spark: SparkSession) -> DataFrame:
        """A row for each question: its count and the hash of its topics."""
        return spark.createDataFrame(self.totals_table())

    def history_frame(self, spark: SparkSession) -> DataFrame:
        """A row about the build."""
        return spark.createDataFrame(self.history_table())

    def matches_frame(
        self,
        spark: SparkSession,
        store_options: Mapping[str, str] | None = None,
        *,
        partitions: int | None = None,
    ) -> DataFrame:
        """A row for each topic of each question, which tasks read from the store when the frame is evaluated."""
        return matches_frame(
            spark,
            self.store,
            dict(store_options or {}),
            self.manifest,
            self.published,
            matches=self.totals.matches,
            tasks=partitions,
        )

    def _repr_html_(self) -> str:
        """The table that notebooks show."""
        record = self.record()
        rows = {
            "Generation": f"{self.generation[:12]} (number {self.number})",
            "Catalogue": self.catalogue,
            **{
                what.capitalize(): f"{record[what]:,}"
                for what in ("topics", "questions", "matches", "refused")
            },
            "Questions left out": f"{len(self.left_out):,}",
            "Coverage": "-" if self.coverage is None else f"{self.coverage:.1%}",
            "Seconds": f"{self.seconds['total']:.1f}",
        }
        lines = (f"<tr><th>{escape(what)}</th><td>{escape(said)}</td></tr>" for what, said in rows.items())
        return f"<table>{''.join(lines)}</table>"

    def kept_record(self) -> dict[str, Any]:
        """The record of a build that has published, which stays beside its generation."""
        record = self.record()
        del record["refused_patterns"], record["store"]
        return {
            "version": 1,  # raised when a key changes its meaning
            "builder": self.builder,
            "began": self.began.isoformat(),
            "published": self.published.isoformat(),
            "patterns": self.patterns,
            "incremental": self.incremental,
            "task_seconds": [round(seconds, 3) for seconds in sorted(self.task_seconds)[-1000:]],
            **record,
        }

    def record(self) -> dict[str, Any]:
        """The JSON line that the command prints."""
        return {
            "generation": self.generation,
            "number": self.number,
            "store": self.store,
            "catalogue": self.catalogue,
            "catalogue_id": self.manifest.catalogue_id,
            "static": self.manifest.static,
            "topics": self.manifest.topics,
            "namespaces": len(self.manifest.namespaces),
            "questions": len(self.totals),
            "matches": self.totals.matches,
            "matches_export": self.matches_export or None,
            "coverage": None if self.coverage is None else round(self.coverage, 6),
            "property_keys": list(self.manifest.property_keys),
            "kept_questions": self.loaded.kept,
            "forgotten_questions": self.loaded.forgotten,
            "duplicate_questions": self.loaded.duplicates,
            "duplicate_topics": self.duplicates,
            "system_topics": self.system_topics,
            "rows_left_out": self.rows_left_out,
            "ignored_properties": dict(Counter(self.loaded.ignored).most_common(_SHOWN)),
            "refused": len(self.refused),
            "refused_patterns": [
                {"namespace": one.namespace, "pattern": one.pattern[:200], "reason": one.reason[:300]}
                for one in self.refused[:_SHOWN]
            ],
            "unknown_namespaces": sorted({question.namespace for question in self.left_out})[:_SHOWN],
            "differences": None if self.differences is None else self.differences.record(self.totals.counts),
            "not_compared": self.not_compared or None,
            "segments": len(self.manifest.segments),
            "segments_written": self.segments_written,
            "segments_kept": self.segments_kept,
            "postings_written": self.postings_written,
            "full_because": self.full_because,
            "partitions": self.tasks,
            "seconds": {what: round(seconds, 3) for what, seconds in self.seconds.items()},
        }


def this_builder(spark: SparkSession, run: str) -> dict[str, Any]:
    """The record of this process as the builder: user, host, process, run and versions.

    ``application`` is the id of the Spark application; empty through Spark Connect, which does not give it.
    """
    context = classic_context(spark)
    try:
        plugin = version("broker-core-spark")
    except PackageNotFoundError:
        plugin = "unknown"
    return {
        "user": user_name(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "run": run,
        "version": plugin,
        "spark": str(spark.version),
        "python": platform.python_version(),
        "application": "" if context is None else str(context.applicationId),
    }
