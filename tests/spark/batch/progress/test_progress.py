"""Progress of a job, and its receivers."""

from __future__ import annotations

from broker_core_spark.batch.progress.progress import SparkJob, current_progress, showing
from broker_core_spark.batch.progress.shown_progress import ProgressLines

JOB = SparkJob("make segments", {"segments": 40, "questions": 1020}, 240_000_000)


def test_a_job_says_its_amounts() -> None:
    assert str(JOB) == "make segments: 40 segments, 1,020 questions, 240.0 MB"
    assert str(SparkJob("read the catalogue")) == "read the catalogue"
    assert str(SparkJob("x", size=7)) == "x: 7 B"


def test_the_state_has_rate_and_time_left() -> None:
    assert JOB.state(1, 4, 10.0) == f"{JOB}: 1 of 4 tasks, 60.0 MB done, 6.0 MB/s, about 30 s left"
    assert SparkJob("read").state(0, 4, 10.0) == "read: 0 of 4 tasks"
    assert SparkJob("read").state(2, 4, 0.5) == "read: 2 of 4 tasks"
    assert SparkJob("read").state(0, 0, 0.0) == "read: 0 of 0 tasks"


def test_the_progress_of_a_build_is_told_inside_alone() -> None:
    assert current_progress() is None
    lines = ProgressLines(lambda _: None)
    with showing(lines):
        assert current_progress() is lines
        with showing(None):
            assert current_progress() is None
        assert current_progress() is lines
    assert current_progress() is None
