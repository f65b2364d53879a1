"""A changed segment is refused: no crash, no wrong listing."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import NameSelector, canonical_json
from broker_core_spark.format.manifest import FileEntry, SegmentEntry
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.postings_file import read_postings
from broker_core_spark.format.segment_reader import SegmentRun, segment_runs
from broker_core_spark.format.selector_keys import split_keys
from tests.support.generations import picked_by
from tests.support.segment_writer import SegmentWriter

SELECTORS = [NameSelector(text) for text in (None, "t/n/a.*", "t/n/.*[024]", "even")]
NAMES = EncodedNames.of(
    "t/n",
    "persistent",
    [
        "a0",
        "a1",
        "a2",
        "b\n",
        "c4",
        "😀",
        "\ue000",
        "y" * 200,
        "z" * 17_000,
        *(f"x{n:02}" for n in range(60)),
    ],
)
#: So many that they are written as bits.
EVEN = np.arange(0, len(NAMES), 2)


def written() -> tuple[bytes, bytes]:
    writer = SegmentWriter()
    writer.add_run(EncodedNames.of("t/n", "non-persistent", ["only"]), [], [])
    picks: list[tuple[NameSelector, Matches]] = [
        (SELECTORS[0], (0, len(NAMES))),
        (SELECTORS[1], (0, 3)),
        (SELECTORS[2], np.array([0, 2, 4])),
        (SELECTORS[3], EVEN),
    ]
    writer.add_run(NAMES, SELECTORS, picks)
    made = writer.finish()
    return b"".join(made.names.data), b"".join(made.postings.data)


RAW, POSTINGS = written()


def read(names: bytes = RAW, postings: bytes = POSTINGS) -> list[SegmentRun]:
    """All runs, hashes included."""
    entry = SegmentEntry("segments/x.seg", len(names), "", (), FileEntry("postings/x.post", len(postings)))
    stored = read_postings(pa.py_buffer(postings), entry.postings.name)
    runs = list(segment_runs(entry, pa.py_buffer(names), stored))
    for run in runs:
        for index in range(len(run.postings.entries)):
            run.check_hash(index)
    return runs


def refused(content: bytes, kind: str = "names") -> str:
    with pytest.raises(InvalidGeneration) as caught:
        read(**{kind: content})
    assert caught.value.file == ("segments/x.seg" if kind == "names" else "postings/x.post")
    return caught.value.reason


CONTENTS = {"names": RAW, "postings": POSTINGS}
KINDS = pytest.mark.parametrize("kind", CONTENTS)
FILES = {"names": segment_layout.NAMES, "postings": segment_layout.POSTINGS}


def sections(kind: str) -> list[tuple[int, int]]:
    """The positions of the sections of the second run, from the directory."""
    raw, file = CONTENTS[kind], FILES[kind]
    at, size, _ = segment_layout.TRAILER.unpack_from(raw, len(raw) - segment_layout.TRAILER.size)
    start = segment_layout.HEADER.size
    places = []
    for run in json.loads(raw[at : at + size])["runs"]:
        places.append(file.place(start, *(run[key] for key in file.sizes)))
        start = places[-1].end
    return list(places[1].sections)


def test_what_was_written_is_read() -> None:
    other, run = read()
    assert (other.domain, other.names.names.to_pylist(), len(other.postings.entries)) == (
        "non-persistent",
        ["only"],
        0,
    )
    assert run.names.names.equals(NAMES.names)
    assert picked_by(run, SELECTORS[1]) == [0, 1, 2]
    assert picked_by(run, SELECTORS[2]) == [0, 2, 4]
    assert picked_by(run, SELECTORS[3]) == EVEN.tolist()
    kinds = dict(
        zip(split_keys(run.postings.entries["key"]), run.postings.entries["kind"].tolist(), strict=True)
    )
    assert [kinds[selector.key] for selector in SELECTORS] == [
        segment_layout.KIND_RANGE,
        segment_layout.KIND_RANGE,
        segment_layout.KIND_ROWS,
        segment_layout.KIND_BITS,
    ]


@KINDS
def test_another_version_is_refused_by_its_number(kind: str) -> None:
    raw = CONTENTS[kind]
    newer = raw[:8] + struct.pack("<I", 3) + raw[12:]
    assert refused(newer, kind) == "format version 3.0: only 2.0 is known here"


@KINDS
def test_a_foreign_file_is_refused(kind: str) -> None:
    other = POSTINGS if kind == "names" else RAW
    for content in (b"PAR1" + bytes(100) + b"PAR1", b"\0" * 1000, other):
        assert "does not begin as a" in refused(content, kind)


def test_postings_of_another_segment_are_refused() -> None:
    writer = SegmentWriter()
    writer.add_run(NAMES.slice(0, 3), [], [])
    made = writer.finish()
    assert "not those of its segment" in refused(b"".join(made.postings.data), "postings")


def with_directory(change: Callable[[dict[str, Any]], object], kind: str) -> bytes:
    raw = CONTENTS[kind]
    at, size, magic = segment_layout.TRAILER.unpack_from(raw, len(raw) - segment_layout.TRAILER.size)
    directory = json.loads(raw[at : at + size])
    change(directory)
    data = canonical_json(directory)
    return raw[:at] + data + segment_layout.TRAILER.pack(at, len(data), magic)


@KINDS
@pytest.mark.parametrize(
    "change",
    [
        lambda directory: directory.update(more=1),
        lambda directory: directory["runs"].clear(),
        lambda directory: directory["runs"].pop(),
        lambda directory: directory["runs"].reverse(),
        lambda directory: directory["runs"].append(directory["runs"][0]),
        lambda directory: directory["runs"][0].pop("names"),
        lambda directory: directory["runs"][1].update(names=2**62),
        lambda directory: directory["runs"][1].update(names=-1),
        lambda directory: directory["runs"][1].update(names=True),
        lambda directory: directory["runs"][1].update(names=0),
        lambda directory: directory["runs"][1].update(names=len(NAMES) + 1),
        lambda directory: directory["runs"][1].update(namespace="t/m"),
        lambda directory: directory["runs"][1].update(namespace=["t/n"]),
        lambda directory: directory["runs"][1].update(domain="non-persistent"),
        lambda directory: directory["runs"][1].update(domain=["persistent"]),
    ],
)
def test_a_directory_that_lies_is_refused(change: Callable[[dict[str, Any]], object], kind: str) -> None:
    with pytest.raises(InvalidGeneration):
        read(**{kind: with_directory(change, kind)})


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("names", {"fields_size": "x"}),
        ("names", {"fields_size": 2**40}),
        ("postings", {"entries": 1.5}),
        ("postings", {"entries": 2**40}),
        ("postings", {"words": -1}),
        ("postings", {"selectors": "x"}),
        ("postings", {"selectors": 1}),
    ],
)
def test_a_size_that_lies_is_refused(kind: str, parts: dict[str, Any]) -> None:
    refused(with_directory(lambda directory: directory["runs"][1].update(parts), kind), kind)


@KINDS
def test_a_directory_elsewhere_is_refused(kind: str) -> None:
    raw = CONTENTS[kind]
    at, size, magic = segment_layout.TRAILER.unpack_from(raw, len(raw) - segment_layout.TRAILER.size)
    for wrong in (
        (at + 8, size),
        (at, size - 1),
        (2**64 - 1, 2),
        (0, len(raw) - segment_layout.TRAILER.size),
    ):
        assert "directory" in refused(
            raw[: -segment_layout.TRAILER.size] + segment_layout.TRAILER.pack(*wrong, magic), kind
        )


def changed(kind: str, section: int, make: Callable[[bytearray], object]) -> bytes:
    raw = CONTENTS[kind]
    at, size = sections(kind)[section]
    part = bytearray(raw[at : at + size])
    make(part)
    return raw[:at] + bytes(part) + raw[at + size :]


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
        ("kind", 3, 0),
        ("kind", 2, 0),
        ("kind", 2, 2),
        ("kind", 1, 3),
        ("count", 3, 3),
        ("first", 1, 3),
        ("kind", 1, 0),
        ("kind", 0, 2),
        ("zero", 1, 1),
    ],
)
def test_an_entry_that_lies_is_refused(field: str, value: int, number: int) -> None:
    content = changed("postings", 0, entry(number, field, value))
    assert refused(content, "postings").startswith("the postings of t/n: ")


def test_a_hash_of_other_names_is_refused() -> None:
    for number in range(4):
        assert "hash of a selector" in refused(changed("postings", 0, entry(number, "crc", 1)), "postings")


@pytest.mark.parametrize("rows", [[0, 2, 2], [2, 0, 4], [0, 2, 2**32 - 1], [0, 2, len(NAMES)], [0, 1, 2]])
def test_row_numbers_that_are_none_are_refused(rows: list[int]) -> None:
    _, run = read()
    at = 4 * int(
        run.postings.entries["first"][split_keys(run.postings.entries["key"]).index(SELECTORS[2].key)]
    )

    def make(part: bytearray) -> None:
        part[at : at + 12] = np.array(rows, "<u4").tobytes()

    assert refused(changed("postings", 1, make), "postings").startswith("the postings of t/n: ")


@pytest.mark.parametrize(
    "bits",
    [
        [*EVEN, len(NAMES)],  # behind the last name
        EVEN[1:],
        [*EVEN, 1],
        range(len(EVEN)),
        [1, *EVEN[1:]],
    ],
)
def test_bits_that_are_none_are_refused(bits: Sequence[int]) -> None:
    _, run = read()
    at = 4 * int(
        run.postings.entries["first"][split_keys(run.postings.entries["key"]).index(SELECTORS[3].key)]
    )
    every = np.zeros(96, bool)
    every[list(bits)] = True

    def make(part: bytearray) -> None:
        part[at : at + 12] = np.packbits(every, bitorder="little").tobytes()

    refused(changed("postings", 1, make), "postings")


def test_offsets_that_do_not_ascend_are_refused() -> None:
    for value in (0, 2**32 - 1):

        def make(part: bytearray, value: int = value) -> None:
            part[8:12] = struct.pack("<I", value)

        assert "offsets" in refused(changed("names", 0, make))


def test_names_in_another_order_are_refused() -> None:
    def swap(part: bytearray) -> None:
        size = 2 + len("persistent://t/n/a0")
        part[:size], part[size : 2 * size] = part[size : 2 * size], part[:size]

    assert "order of the hash" in refused(changed("names", 1, swap))
