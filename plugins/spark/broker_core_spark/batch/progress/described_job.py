"""Jobs of Spark with a group, a description and amounts, in Spark's UI and event log, whose tasks are counted.

The amounts are local properties of the job, because Python has no accumulator with a name: PySpark registers one in the
JVM, without a name, which carries Python's as bytes. Spark Connect has no context, and so no amounts.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.progress.progress import Progress, SparkJob, current_progress

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["classic_context", "described_job"]

#: The amounts of a job are local properties with these names, in the events of its beginning and of its stages.
_AMOUNT: Final = "broker_core."
_EVERY: Final = 0.5  # seconds between two counts


@contextmanager
def described_job(spark: SparkSession, job: SparkJob) -> Iterator[None]:
    """Gives jobs that this thread starts in the block a group of their own. Afterwards it has its former group."""
    context = classic_context(spark)
    if context is None:
        yield
        return
    group = f"broker-core-{uuid.uuid4().hex[:12]}"
    amounts = {**job.amounts, "bytes": job.size} if job.size else job.amounts
    properties = {"spark.jobGroup.id": group, "spark.job.description": str(job)}
    properties |= {f"{_AMOUNT}{what}": str(count) for what, count in amounts.items()}
    before = {name: context.getLocalProperty(name) for name in properties}
    for name, value in properties.items():
        context.setLocalProperty(name, value)
    progress = current_progress()
    ended = threading.Event()
    counter = None
    if progress is not None:
        counter = threading.Thread(
            target=_count, args=(context, group, job, progress, ended), name="progress", daemon=True
        )
        counter.start()
    try:
        yield
    finally:
        ended.set()
        if counter is not None:
            counter.join(2 * _EVERY)
        # A signal may have ended the JVM too.
        with suppress(Exception):
            for name, had in before.items():
                context.setLocalProperty(name, had)  # type: ignore[arg-type]  # None removes it


def classic_context(spark: SparkSession) -> SparkContext | None:
    """The context of a classic session; Spark Connect has none."""
    from pyspark.errors import PySparkException

    try:
        return spark.sparkContext
    except (PySparkException, AttributeError):
        return None


def _count(
    context: SparkContext, group: str, job: SparkJob, progress: Progress, ended: threading.Event
) -> None:
    """Report the tasks of the group until the job has ended. Progress is no reason for a build to fail."""
    began = time.monotonic()
    tracker = context.statusTracker()
    with suppress(Exception):
        while not ended.wait(_EVERY):
            done = tasks = 0
            for number in tracker.getJobIdsForGroup(group):
                found = tracker.getJobInfo(number)
                for stage in found.stageIds if found else ():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        done += info.numCompletedTasks
                        tasks += info.numTasks
            if tasks:
                progress.tasks(job, done, tasks, time.monotonic() - began)
