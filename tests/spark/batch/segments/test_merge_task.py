"""The selectors and the sizes of the segments that a task joins."""

from __future__ import annotations

from broker_core.names import Mode
from broker_core_spark.batch.segments.merge_task import PartsOfSegment, selectors_of
from broker_core_spark.batch.segments.segment_puts import SegmentResult
from broker_core_spark.batch.segments.staged_selectors import stage_selectors
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from tests.support.generation_builder import build_generation
from tests.support.generations import memory


def test_a_task_is_told_of_its_segments_and_of_their_selectors_alone() -> None:
    store = memory()
    questions = [CanonicalQuestion.of(namespace, Mode.PERSISTENT, ".*a") for namespace in ("t/m", "t/n")]
    made = build_generation(store, {"t/n": {"persistent": ["a", "b"]}}, questions[1:], catalogue_id="c")
    selectors = stage_selectors(store, "temporary/selectors", required_selectors(questions))
    parts = PartsOfSegment(SegmentResult(made.segments[0]), (("temporary/x", 0, 10), ("temporary/y", 5, 6)))
    assert parts.size == 11
    assert set(selectors_of([parts], selectors).places) == {("t/n", "persistent")}
