"""Postings of several segments become rows of one listing, with their hash and count."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core import EncodedNames
from broker_core.listing.hashes.topics_hash import crc_text, topics_hash
from broker_core.names import Mode
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, CanonicalQuestion, required_selectors
from broker_core_spark.serving.opened import answer_index
from broker_core_spark.serving.opened.answer_index import IS_RANGE, RECORD, NamespacePostings
from broker_core_spark.store.private_file import PrivateFile
from tests.support.generation_builder import opened_segment
from tests.support.segment_writer import SegmentWriter

PATTERNS = ["even", "first", "all", "none"]
QUESTIONS = [CanonicalQuestion.of("t/n", mode, pattern) for mode in Mode for pattern in PATTERNS]


def picked(pattern: str | None, rows: range) -> list[int]:
    """Rows of a domain that a made-up pattern picks."""
    steps = {"even": (0, 2, 999), "first": (0, 1, 7), "all": (0, 1, 999)}
    if pattern not in steps:
        return []
    start, step, stop = steps[pattern]
    return [row for row in range(start, stop, step) if row in rows]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 90), max_size=4),
    st.lists(st.integers(1, 90), max_size=4),
    st.permutations(QUESTIONS),
    st.sampled_from([1, 7, 65_536]),
)
def test_parts_are_put_together(
    others: list[int], persistent: list[int], asked: list[CanonicalQuestion], at_once: int
) -> None:
    required = required_selectors(QUESTIONS)
    full: list[str] = []
    with PrivateFile() as scratch, PrivateFile() as entries, PrivateFile() as rows_file:
        postings = NamespacePostings("t/n", 0, scratch, entries)
        for domain, sizes in zip(DOMAIN_ORDER, (others, persistent), strict=True):
            start = 0
            for size in sizes:
                names = EncodedNames.of("t/n", domain, [f"{row:03}" for row in range(start, start + size)])
                selectors = required["t/n", domain]
                rows = range(start, start + size)
                writer = SegmentWriter()
                writer.add_run(
                    names,
                    selectors,
                    [(one, np.array(picked(one.pattern, rows), np.int64) - start) for one in selectors],
                )
                segment = opened_segment(writer)
                assert len(list(segment.runs())) == 1
                postings.add(segment.postings[0])
                full += [f"{domain}://t/n/{name}" for name in names.names.to_pylist()]
                start += size
        assert (postings.names, postings.others) == (len(full), sum(others))
        with mock.patch.object(answer_index, "_ENTRIES_AT_ONCE", at_once):
            records = postings.answers(asked, rows_file)
        rows_of_all = np.frombuffer(rows_file.mapped(), "<i4")
    assert records.dtype == RECORD
    for question, record in zip(asked, records, strict=True):
        shown = [name for name in full if name.partition("://")[0] in question.domains]
        counts = {"non-persistent": sum(others), "persistent": sum(persistent)}
        wanted: list[int] = []
        skipped = 0
        for domain in question.domains:
            wanted += [skipped + row for row in picked(question.selector.pattern, range(counts[domain]))]
            skipped += counts[domain]
        first, count = int(record["first"]), int(record["count"])
        is_range = record["kind"] == IS_RANGE
        rows_found = (
            list(range(first, first + count)) if is_range else rows_of_all[first : first + count].tolist()
        )
        assert rows_found == wanted
        assert is_range == (not wanted or wanted == list(range(wanted[0], wanted[-1] + 1)))
        names_found = [shown[row] for row in wanted]
        assert crc_text(int(record["crc"])) == topics_hash(names_found)
