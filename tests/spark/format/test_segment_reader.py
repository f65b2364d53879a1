"""A changed segment is refused: no crash, no wrong listing."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import NameSelector, canonical_json
from broker_core_spark.format.segment_reader import Segment, SegmentRun
from broker_core_spark.format.segment_writer import Matches, SegmentWriter
from tests.support.generations import picked_by

SELECTORS = [NameSelector(None), NameSelector("t/n/a.*"), NameSelector("t/n/.*[024]")]
NAMES = EncodedNames.of(
    "t/n", "persistent", ["a0", "a1", "a2", "b\n", "c4", "😀", "\ue000", "y" * 200, "z" * 17_000]
)


def written() -> bytes:
    writer = SegmentWriter()
    writer.add_run(EncodedNames.of("t/n", "non-persistent", ["only"]), [], [])
    picks: list[tuple[NameSelector, Matches]] = [
        (SELECTORS[0], (0, len(NAMES))),
        (SELECTORS[1], (0, 3)),
        (SELECTORS[2], np.array([0, 2, 4])),
    ]
    writer.add_run(NAMES, SELECTORS, picks)
    with writer.finish().file as file:
        return file.read()


RAW = written()


def read(content: bytes) -> list[SegmentRun]:
    """All runs, hashes included."""
    runs = list(Segment.open(pa.py_buffer(content), "segments/x.seg").runs())
    for run in runs:
        for index in range(len(run.entries)):
            run.check_hash(index)
    return runs


def fingerprint(runs: list[SegmentRun]) -> Any:
    return [
        (
            run.namespace,
            run.domain,
            run.asked_digest,
            run.names.names,
            run.entries.tobytes(),
            run.rows.tobytes(),
        )
        for run in runs
    ]


def refused(content: bytes) -> str:
    with pytest.raises(InvalidGeneration) as caught:
        read(content)
    assert caught.value.file == "segments/x.seg"
    return caught.value.reason


def sections() -> list[tuple[int, int]]:
    """The positions of the sections of the second run, from the directory."""
    at, size, _ = segment_layout.TRAILER.unpack_from(RAW, len(RAW) - segment_layout.TRAILER.size)
    runs = json.loads(RAW[at : at + size])["runs"]
    start = segment_layout.HEADER.size
    places = []
    for run in runs:
        places.append(
            segment_layout.RunLayout(
                start, *(run[key] for key in ("names", "fields_size", "entries", "rows"))
            )
        )
        start = places[-1].end
    return list(places[1].sections())


def test_what_was_written_is_read() -> None:
    other, run = read(RAW)
    assert (other.domain, other.names.names.to_pylist(), len(other.entries)) == (
        "non-persistent",
        ["only"],
        0,
    )
    assert run.names.names.equals(NAMES.names)
    assert picked_by(run, SELECTORS[1]) == [0, 1, 2]


@pytest.mark.parametrize("part", range(8))
def test_a_flipped_bit_is_refused_or_is_another_name(part: int) -> None:
    """A changed letter of a name that no selector picks is left to the file's checksum."""
    random = Random(part)
    places = [*range(200), *range(len(RAW) - 450, len(RAW)), *random.sample(range(len(RAW)), 150)]
    before = fingerprint(read(RAW))
    for place in places[part::8]:
        damaged = bytearray(RAW)
        damaged[place] ^= 1 << random.randrange(8)
        try:
            after = fingerprint(read(bytes(damaged)))
        except InvalidGeneration:
            continue
        assert after != before


def test_a_truncated_file_is_refused() -> None:
    for size in [*range(0, len(RAW), 331), len(RAW) - 1, len(RAW) - segment_layout.TRAILER.size]:
        refused(RAW[:size])
    assert "truncated" in refused(RAW[:-1])
    assert "no segment" in refused(b"")


def test_a_newer_version_is_refused_by_its_number() -> None:
    newer = RAW[:8] + struct.pack("<I", 2) + RAW[12:]
    assert refused(newer) == "format version 2.0: only 1.0 is known here"


def test_a_foreign_file_is_refused() -> None:
    assert "does not begin as a segment" in refused(b"PAR1" + bytes(100) + b"PAR1")
    assert "does not begin as a segment" in refused(b"\0" * 1000)


def with_directory(change: Callable[[dict[str, Any]], object]) -> bytes:
    at, size, _ = segment_layout.TRAILER.unpack_from(RAW, len(RAW) - segment_layout.TRAILER.size)
    directory = json.loads(RAW[at : at + size])
    change(directory)
    data = canonical_json(directory)
    return RAW[:at] + data + segment_layout.TRAILER.pack(at, len(data), segment_layout.TRAILER_MAGIC)


@pytest.mark.parametrize(
    "change",
    [
        lambda directory: directory.update(more=1),
        lambda directory: directory["runs"].clear(),
        lambda directory: directory["runs"].pop(),
        lambda directory: directory["runs"].reverse(),
        lambda directory: directory["runs"].append(directory["runs"][0]),
        lambda directory: directory["runs"][0].pop("rows"),
        lambda directory: directory["runs"][1].update(names=2**62),
        lambda directory: directory["runs"][1].update(names=-1),
        lambda directory: directory["runs"][1].update(names=True),
        lambda directory: directory["runs"][1].update(names=0),
        lambda directory: directory["runs"][1].update(entries=1.5),
        lambda directory: directory["runs"][1].update(entries=2**40),
        lambda directory: directory["runs"][1].update(fields_size="x"),
        lambda directory: directory["runs"][1].update(namespace="t/m"),
        lambda directory: directory["runs"][1].update(namespace=["t/n"]),
        lambda directory: directory["runs"][1].update(domain="non-persistent"),
        lambda directory: directory["runs"][1].update(domain=["persistent"]),
        lambda directory: directory["runs"][1].update(selectors="x"),
    ],
)
def test_a_directory_that_lies_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    refused(with_directory(change))


def test_a_directory_elsewhere_is_refused() -> None:
    at, size, magic = segment_layout.TRAILER.unpack_from(RAW, len(RAW) - segment_layout.TRAILER.size)
    for wrong in (
        (at + 8, size),
        (at, size - 1),
        (2**64 - 1, 2),
        (0, len(RAW) - segment_layout.TRAILER.size),
    ):
        assert "directory" in refused(
            RAW[: -segment_layout.TRAILER.size] + segment_layout.TRAILER.pack(*wrong, magic)
        )


def changed(section: int, make: Callable[[bytearray], object]) -> bytes:
    at, size = sections()[section]
    part = bytearray(RAW[at : at + size])
    make(part)
    return RAW[:at] + bytes(part) + RAW[at + size :]


def entry(number: int, field: str, value: int) -> Callable[[bytearray], object]:
    def make(part: bytearray) -> None:
        entries = np.frombuffer(part, segment_layout.ENTRY).copy()
        # Sorted by the picked names, because keys are hashes.
        order = np.lexsort((entries["count"], entries["kind"]))
        entries[field][order[number]] = value
        part[:] = entries.tobytes()

    return make


@pytest.mark.parametrize(
    ("field", "value", "number"),
    [
        ("count", 0, 0),
        ("count", 2**32 - 1, 0),
        ("count", 2, 0),
        ("count", 2, 2),
        ("count", 2**32 - 1, 2),
        ("first", 2**64 - 1, 0),
        ("first", len(NAMES), 0),
        ("first", 1, 2),
        ("first", 2**63, 2),
        ("joined", 1, 0),
        ("joined", 2**64 - 1, 2),
        ("kind", 2, 0),
        ("kind", 1, 0),
        ("kind", 0, 2),
        ("zero", 1, 1),
    ],
)
def test_an_entry_that_lies_is_refused(field: str, value: int, number: int) -> None:
    assert refused(changed(2, entry(number, field, value))).startswith("the postings of t/n: ")


def test_a_hash_of_other_names_is_refused() -> None:
    for number in range(3):
        assert "hash of a selector" in refused(changed(2, entry(number, "crc", 1)))


@pytest.mark.parametrize("rows", [[0, 2, 2], [2, 0, 4], [0, 2, 2**32 - 1], [0, 2, len(NAMES)], [0, 1, 2]])
def test_row_numbers_that_are_none_are_refused(rows: list[int]) -> None:
    def make(part: bytearray) -> None:
        part[:] = np.array(rows, "<u4").tobytes()

    assert refused(changed(3, make)).startswith("the postings of t/n: ")


def test_offsets_that_do_not_ascend_are_refused() -> None:
    for value in (0, 2**32 - 1):

        def make(part: bytearray, value: int = value) -> None:
            part[8:12] = struct.pack("<I", value)

        assert "offsets" in refused(changed(0, make))


def test_names_in_another_order_are_refused() -> None:
    def swap(part: bytearray) -> None:
        size = 2 + len("persistent://t/n/a0")
        part[:size], part[size : 2 * size] = part[size : 2 * size], part[:size]

    assert "order of the hash" in refused(changed(1, swap))
