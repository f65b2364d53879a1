"""The result of a segment as JSON, as a task that merges gets it."""

from __future__ import annotations

import json

from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.format.manifest import FileEntry, SegmentEntry


def test_a_result_is_read_as_it_was_written() -> None:
    entry = SegmentEntry(
        f"segments/{'a' * 64}.seg",
        7,
        "first \U0001f600",
        (("a/b", "persistent", 3), ("a/c", "non-persistent", 1)),
        FileEntry(f"postings/{'b' * 64}.post", 9),
        continues=True,
    )
    result = SegmentResult(entry, new=True, duplicates=2, digest="c" * 32)
    assert SegmentResult.of(json.loads(json.dumps(result.record()))) == result
