"""A segment has what it was given, in equal bytes each time. Runs out of order are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import EncodedNames
from broker_core.listing.listing_hash import crc_text, topics_hash
from broker_core_spark.format.canonical_question import NameSelector
from broker_core_spark.format.selector_keys import split_keys
from tests.support.generation_builder import opened_runs
from tests.support.generations import picked_by
from tests.support.segment_writer import SegmentWriter
from tests.support.topics import decoded_topics, local_names

SELECTORS = [NameSelector("a.*"), NameSelector("b.*"), NameSelector("c", (("k", "v"),))]


def contents(writer: SegmentWriter) -> tuple[bytes, bytes]:
    made = writer.finish()
    return b"".join(made.names.data), b"".join(made.postings.data)


def encoded(names: list[str], namespace: str = "t/n", domain: str = "persistent") -> EncodedNames:
    return EncodedNames.of(namespace, domain, names)


@given(st.lists(local_names(), min_size=1, max_size=99, unique=True), st.data())
def test_a_run_is_read_as_it_was_written(local: list[str], data: st.DataObject) -> None:
    names = encoded(local)
    if not len(names):
        return
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(names) - 1)))), np.int64)
    low = data.draw(st.integers(0, len(names)))
    high = data.draw(st.integers(low, len(names)))
    writer = SegmentWriter()
    writer.add_run(names, SELECTORS, [(SELECTORS[0], rows), (SELECTORS[2], (low, high))])
    (run,) = opened_runs(writer)
    full = [f"persistent://t/n/{name}" for name in names.names.to_pylist()]
    assert run.names.names.equals(names.names)
    assert decoded_topics(b"".join(run.names.fields.to_pylist())) == full
    for selector, wanted in (
        (SELECTORS[0], rows.tolist()),
        (SELECTORS[2], list(range(low, high))),
        (SELECTORS[1], []),
    ):
        assert picked_by(run, selector) == wanted
        if wanted:
            index = split_keys(run.postings.entries["key"]).index(selector.key)
            assert crc_text(int(run.postings.entries[index]["crc"])) == topics_hash(
                full[row] for row in wanted
            )
            assert run.check_hash(index) == int(run.postings.entries[index]["joined"])


def test_neighbours_are_one_range_however_they_are_given() -> None:
    written = []
    for picked in ((1, 3), np.array([1, 2]), np.array([1, 2], np.uint32)):
        writer = SegmentWriter()
        writer.add_run(encoded(["a", "b", "c"]), SELECTORS, [(SELECTORS[0], picked)])
        written.append(contents(writer))
    assert len(set(written)) == 1


def test_the_entry_says_what_is_in_the_file() -> None:
    writer = SegmentWriter()
    writer.add_run(encoded(["x", "y"], "t/m"), [], [])
    writer.add_run(encoded(["x"], domain="non-persistent"), [], [])
    writer.add_run(encoded(["x"]), [], [])
    segment = writer.finish()
    assert len(b"".join(segment.names.data)) == segment.names.size == segment.entry.size
    assert len(b"".join(segment.postings.data)) == segment.postings.size == segment.entry.postings.size
    assert segment.names.name == segment.entry.name == f"segments/{segment.entry.sha256}.seg"
    assert segment.entry.postings.name == f"postings/{segment.entry.postings.sha256}.post"
    assert segment.entry.runs == (
        ("t/m", "persistent", 2),
        ("t/n", "non-persistent", 1),
        ("t/n", "persistent", 1),
    )
    assert (segment.entry.first_local, segment.entry.names) == ("x", 4)


@pytest.mark.parametrize(
    ("runs", "wrong"),
    [
        ([], "at least one run"),
        ([("t/n", "persistent", [])], "a run of 0 names"),
        ([("t/n", "persistent", ["a"]), ("t/n", "non-persistent", ["a"])], "not in order"),
        ([("t/n", "persistent", ["a"]), ("t/n", "persistent", ["b"])], "not in order"),
        ([("t/n", "persistent", ["a"]), ("t/m", "persistent", ["b"])], "not in order"),
    ],
)
def test_runs_that_make_no_segment_are_refused(runs: list[tuple[str, str, list[str]]], wrong: str) -> None:
    writer = SegmentWriter()
    with pytest.raises(ValueError, match=wrong):
        for namespace, domain, names in runs:
            writer.add_run(encoded(names, namespace, domain), [], [])
        writer.finish()
