"""Segments are given when their files are in the store, in order."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from broker_core_spark.batch.segments import segment_puts
from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.manifest import FileEntry, SegmentEntry
from broker_core_spark.store import open_store


def written(data: bytes) -> FramedFile:
    return FramedFile(f"postings/{hashlib.sha256(data).hexdigest()}.post", len(data), [memoryview(data)])


def result(number: int) -> SegmentResult:
    runs = (("t/n", "persistent", 1),)
    return SegmentResult(SegmentEntry(f"segments/{number:064}.seg", 1, "a", runs, FileEntry("", 0)))


@pytest.mark.parametrize(("files", "size"), [(1, 1_000), (4, 1_000), (100, 5), (100, 1_000)])
def test_segments_are_given_in_order_with_their_files_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: int, size: int
) -> None:
    monkeypatch.setattr(segment_puts, "_MOST_FILES", files)
    monkeypatch.setattr(segment_puts, "_MOST_BYTES", size)
    store = open_store(str(tmp_path))
    store.put_new(written(b"content 3 0").name, b"content 3 0")
    puts = SegmentPuts(store)
    for number in range(7):
        own = [written(b"content %d %d" % (number, part)) for part in range(number % 3 + 1)]
        done = len(puts.stored)
        puts.add(result(number), own)
        there = {file.path for file in store.list("postings")}
        assert len(puts.stored) == done or {file.name for file in own} <= there
    given = puts.finish()
    assert puts.finish() == given
    assert [one.entry for one in given] == [result(number).entry for number in range(7)]
    assert [one.new for one in given] == [number != 3 for number in range(7)]
    # One that had a new file before, and files that are in the store.
    puts = SegmentPuts(store)
    for number, new in ((1, True), (2, False), (4, False)):
        own = [written(b"content %d %d" % (number, part)) for part in range(number % 3 + 1)]
        puts.add(replace(result(number), new=new), own)
    assert [one.new for one in puts.finish()] == [True, False, False]
    assert len(list(store.list("postings"))) == 1 + 2 + 3 + 1 + 2 + 3 + 1
