"""What a task says of a segment comes to the driver as it was."""

from __future__ import annotations

from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.format.manifest import FileEntry, SegmentEntry


def test_a_result_is_read_as_it_was_sent() -> None:
    entry = SegmentEntry(
        f"segments/{'a' * 64}.seg",
        7,
        "first \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        (("a/b", "persistent", 3), ("a/c", "non-persistent", 1)),
        FileEntry(f"postings/{'b' * 64}.post", 9),
        continues=True,
    )
    result = SegmentResult(entry, new=True, duplicates=2)
    assert SegmentResult.parse(result.to_bytes()) == result
