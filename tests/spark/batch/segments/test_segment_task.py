"""A task makes segments: repeated names, contradictory properties, and results for the driver."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.segments.segment_task import SegmentResult, SegmentTask
from broker_core_spark.batch.segments.task_assignment import assign_tasks
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.segment_reader import Segment


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


def made(tmp_path: Path, parts: list[tuple[list[str], list[str | None]]]) -> list[SegmentResult]:
    staging = StagingArea(str(tmp_path), "temporary/test", ("k",), 1 << 20)
    store = staging.open()
    runs = []
    for names, values in parts:
        writer = staging.writer()
        runs += [*writer.add("a/b", "persistent", texts(*names), [texts(*values)]), *writer.finish()]
    (assignment,) = assign_tasks(runs, 1, selectors={})
    store.put_new("temporary/test-assignment-0.json", assignment.to_bytes())
    question = CanonicalQuestion.of("a/b", Mode.PERSISTENT, ".*[13]", {"k": "x"})
    store.put_new("temporary/test-questions.jsonl", question.line)
    work = SegmentTask(staging, "temporary/test-assignment-", "temporary/test-questions.jsonl")
    batch = pa.record_batch([pa.array([0])], names=["id"])
    return [SegmentResult.parse(result) for result in work(iter([batch]))]


def test_names_that_come_twice_are_one(tmp_path: Path) -> None:
    results = made(tmp_path, [(["t1", "t2", "t3"], ["x", "x", None]), (["t3", "t1", "t1"], [None, "x", "x"])])
    (result,) = results
    assert result.duplicates == 3
    assert result.new
    data = (tmp_path / result.entry.name).read_bytes()
    (run,) = Segment.open(pa.py_buffer(data), result.entry.name).runs()
    assert run.names.names.to_pylist() == ["t1", "t2", "t3"]
    ((entries,),) = (each.run_entries for each in results)
    assert entries["count"].tolist() == [1]


def test_a_name_with_two_values_of_a_property_is_a_contradiction(tmp_path: Path) -> None:
    with pytest.raises(InvalidCatalogue, match=r"persistent://a/b/t1.*different values of the property 'k'"):
        made(tmp_path, [(["t1"], ["x"]), (["t1"], ["y"])])
    with pytest.raises(InvalidCatalogue, match="stands twice"):
        made(tmp_path / "null", [(["t1"], ["x"]), (["t1"], [None])])


def test_a_plan_that_is_gone_is_said(tmp_path: Path) -> None:
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    work = SegmentTask(staging, "temporary/none-", "temporary/none.jsonl")
    with pytest.raises(InvalidCatalogue, match="gone"):
        list(work(iter([pa.record_batch([pa.array([0])], names=["id"])])))
