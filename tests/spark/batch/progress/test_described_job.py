"""Descriptions of jobs in Spark's event log, and the tasks that are counted."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.job import build
from broker_core_spark.batch.progress import described_job as described
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Reported:
    """A recorder of a build's messages, which signals messages about tasks."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.jobs: set[str] = set()
        self.reported = threading.Event()

    def step(self, name: str) -> None:
        self.steps.append(name)

    def tasks(self, job: SparkJob, done: int, tasks: int, seconds: float) -> None:
        assert 0 <= done <= tasks
        assert seconds > 0
        self.jobs.add(job.title)
        self.reported.set()


@contextmanager
def event_log(spark: SparkSession, folder: Path) -> Iterator[list[dict[str, Any]]]:
    """The events of Spark's own event log, written beside the running application; full at the end."""
    context = spark.sparkContext
    scala, java = context._jsc.sc(), context._jvm
    assert java is not None
    conf = scala.conf().clone().set("spark.eventLog.compress", "false")
    listener = java.org.apache.spark.scheduler.EventLoggingListener(
        "test", java.scala.Option.empty(), java.java.net.URI.create(folder.as_uri()), conf
    )
    listener.start()
    scala.addSparkListener(listener)
    events: list[dict[str, Any]] = []
    try:
        yield events
    finally:
        scala.listenerBus().waitUntilEmpty()
        scala.removeSparkListener(listener)
        listener.stop()
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith((".", "appstatus")):
            events += [json.loads(line) for line in path.read_text().splitlines()]


def test_the_event_log_says_what_a_build_does(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "topics.sqlite", {"a/b": [f"x{number}" for number in range(50)]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b", "pattern": "a/b/x1.*"}])
    (tmp_path / "events").mkdir()
    reported = Reported()
    with event_log(spark, tmp_path / "events") as events:
        build(
            spark,
            catalogue=str(tmp_path / "topics.sqlite"),
            patterns=str(patterns),
            store=str(tmp_path / "store"),
            property_keys=(),
            progress=reported,
        )
    started = [event["Properties"] for event in events if event["Event"] == "SparkListenerJobStart"]
    (said,) = {job["spark.job.description"] for job in started}
    assert all(job["spark.jobGroup.id"].startswith("broker-core-") for job in started)
    assert said.startswith("make segments: 1 segments, 50 names, 1 questions, ")
    assert reported.steps == ["patterns", "catalogue", "segments", "publish"]
    amounts = {name: value for name, value in started[0].items() if name.startswith("broker_core.")}
    assert int(amounts.pop("broker_core.bytes")) > 0
    assert amounts == {"broker_core.segments": "1", "broker_core.names": "50", "broker_core.questions": "1"}


def test_the_event_log_counts_what_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Input bytes and records are of files that Spark reads. Accumulators are those of its own nodes."""
    names = [f"x{number}" for number in range(5000)]
    table = pa.table({"namespace": ["a/b"] * len(names), "name": names})
    pq.write_table(table, tmp_path / "topics.parquet")
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b", "pattern": "a/b/x1.*"}])
    (tmp_path / "events").mkdir()
    with event_log(spark, tmp_path / "events") as events:
        build(
            spark,
            catalogue=str(tmp_path / "topics.parquet"),
            patterns=str(patterns),
            store=str(tmp_path / "store"),
            property_keys=(),
        )
    stages = {
        event["Stage Info"]["Stage ID"]: event["Properties"].get("spark.job.description")
        for event in events
        if event["Event"] == "SparkListenerStageSubmitted"
    }
    read = [
        event["Task Metrics"]["Input Metrics"]
        for event in events
        if event["Event"] == "SparkListenerTaskEnd" and stages[event["Stage ID"]] == "read the catalogue"
    ]
    assert sum(task["Records Read"] for task in read) == len(names)
    assert sum(task["Bytes Read"] for task in read) > len(names)
    made = [
        {one["Name"] for one in event["Stage Info"]["Accumulables"]}
        for event in events
        if event["Event"] == "SparkListenerStageCompleted"
        and (stages[event["Stage Info"]["Stage ID"]] or "").startswith("make segments")
    ]
    named = {"data sent to Python workers", "data returned from Python workers", "number of output rows"}
    assert made
    assert all(names >= named for names in made)


def test_tasks_are_counted_while_they_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(described, "_EVERY", 0.01)
    reported = Reported()
    monkeypatch.setattr(described, "current_progress", lambda: reported)
    with described_job(spark, SparkJob("count")):
        assert spark.range(0, 4, 1, 4).count() == 4
        assert reported.reported.wait(60)  # jobs that have ended are counted too
    assert reported.jobs == {"count"}


def test_a_thread_has_the_description_that_it_had(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.job.description", "mine")
    try:
        with described_job(spark, SparkJob("count")):
            assert context.getLocalProperty("spark.job.description") == "count"
        assert context.getLocalProperty("spark.job.description") == "mine"
        assert context.getLocalProperty("spark.jobGroup.id") is None
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def test_a_session_without_a_context_runs_its_jobs() -> None:
    with described_job(object(), SparkJob("count")):  # type: ignore[arg-type]
        pass
