"""A postings file has the entries in the order of keys, and says what was asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import PostingsWriter, read_postings
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys

NAMES = EncodedNames.of("a/b", "persistent", [f"t{number:03}" for number in range(90)])
KEYS = [bytes([number]) * 16 for number in range(4)]


def test_postings_are_read_as_they_were_collected() -> None:
    postings = PostingsCollector(NAMES)
    postings.add(KEYS[3], np.arange(0, 90, 2))
    postings.add(KEYS[1], np.array([1, 5]))
    postings.add(KEYS[2], (4, 4))
    postings.add(KEYS[0], (4, 9))
    writer = PostingsWriter()
    _, (collected,) = postings.finish()
    writer.add_run("a/b", "persistent", collected, SelectorKeys.of(KEYS))
    (run,) = read_postings(pa.py_buffer(b"".join(writer.finish().data)), "x")
    assert (run.namespace, run.domain, run.names) == ("a/b", "persistent", 90)
    assert run.selectors_digest == SelectorKeys.of(KEYS).digest
    assert [bytes(key) for key in run.entries["key"]] == [KEYS[0], KEYS[1], KEYS[3]]
    assert run.entries["count"].tolist() == [5, 2, 45]
    assert [NAMES.crc(rows)[0] for rows in ((4, 9), np.array([1, 5]), np.arange(0, 90, 2))] == run.entries[
        "crc"
    ].tolist()
    assert run.words[:2].tolist() == [1, 5]
    assert len(run.words) == 5


def test_nothing_picked_is_a_run_without_entries() -> None:
    writer = PostingsWriter()
    _, (collected,) = PostingsCollector(NAMES).finish()
    writer.add_run("a/b", "persistent", collected, NO_SELECTORS)
    (run,) = read_postings(pa.py_buffer(b"".join(writer.finish().data)), "x")
    assert (len(run.entries), len(run.words)) == (0, 0)
