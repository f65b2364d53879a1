"""The frame of a file: what was written is found, and what is none is refused by its name."""

from __future__ import annotations

import weakref

import numpy as np
import pyarrow as pa
import pytest

from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.framed_file import FramedWriter, open_frame, section_buffers
from broker_core_spark.format.segment_layout import FORMAT_VERSION, HEADER, NAMES, POSTINGS, TRAILER

NO_RUNS = b"".join(
    (
        HEADER.pack(NAMES.head, FORMAT_VERSION, 0),
        b'{"runs":[]}',
        TRAILER.pack(HEADER.size, len(b'{"runs":[]}'), NAMES.tail),
    )
)


def written(*namespaces: str, pad: bytes = b"") -> bytes:
    writer = FramedWriter(NAMES)
    for namespace in namespaces:
        run = {"namespace": namespace, "domain": "persistent"}
        writer.add(run, (1, 3), [bytes(8)], [b"abc", pad or bytes(5)])
    made = writer.finish()
    content = b"".join(made.data)
    assert made.size == len(content)
    assert made.name.startswith("segments/")
    assert made.name.endswith(".seg")
    return content


def test_runs_are_found_where_they_were_written() -> None:
    places = open_frame(NAMES, pa.py_buffer(written("a/b", "a/c")), "x")
    assert [(run["namespace"], place.sections[0][0], place.end) for run, place in places] == [
        ("a/b", 16, 32),
        ("a/c", 32, 48),
    ]


def test_another_kind_another_order_and_no_runs_are_refused() -> None:
    with pytest.raises(InvalidGeneration, match="does not begin as a postings file"):
        open_frame(POSTINGS, pa.py_buffer(written("a/b")), "x")
    with pytest.raises(InvalidGeneration, match="its runs are not in order"):
        open_frame(NAMES, pa.py_buffer(written("a/c", "a/b")), "x")
    with pytest.raises(InvalidGeneration, match="its directory"):
        open_frame(NAMES, pa.py_buffer(NO_RUNS), "x")
    with pytest.raises(ValueError, match="at least one run"):
        written()


def test_a_file_is_in_memory_as_long_as_it_is_used() -> None:
    writer, names = FramedWriter(NAMES), np.zeros(8, np.uint8)
    writer.add({"namespace": "a/b", "domain": "persistent"}, (1, 8), [bytes(8)], [names])
    made, known = writer.finish(), weakref.ref(names)
    del names
    assert known() is not None
    del made
    assert known() is None


def test_something_else_than_zeros_between_sections_is_refused() -> None:
    content = written("a/b", pad=b"\0\0\0\0!")
    ((_, place),) = open_frame(NAMES, pa.py_buffer(content), "x")
    with pytest.raises(InvalidGeneration, match="something else than zeros"):
        section_buffers(pa.py_buffer(content), place, "x")
