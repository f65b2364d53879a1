"""Tallies of parts that follow each other are those of all names."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from broker_core import EncodedNames
from broker_core_spark.batch.segments import tallies
from broker_core_spark.batch.segments.tallies import TallyWriter, read_tallies
from broker_core_spark.errors import DamagedFile
from broker_core_spark.format.postings_collector import PostingsCollector
from tests.support.generations import memory

NAMES = EncodedNames.of("a/b", "persistent", [f"t{number:04}" for number in range(900)])
KEYS = [bytes([number]) * 16 for number in range(20)]
PICKED = {key: np.array(sorted(Random(key[0]).sample(range(900), 1 + 9 * key[0]))) for key in KEYS}


@pytest.mark.parametrize("held", [1, 2, 1000])
@pytest.mark.parametrize("files", [1, 3])
def test_parts_are_joined_in_the_order_of_segments(
    monkeypatch: pytest.MonkeyPatch, held: int, files: int
) -> None:
    monkeypatch.setattr(tallies, "_HELD", held)
    store = memory()
    bounds = [0, 100, 101, 350, 600, 899, 900]
    writers = [TallyWriter() for _ in range(files)]
    for number, (low, high) in enumerate(pairwise(bounds)):
        writer = writers[number % files]
        if files > 1 or number in (0, 3):
            writer.begin(b"%04d" % low)
        for half in (KEYS[::2], KEYS[1::2]):  # a selector is in one of two groups
            postings = PostingsCollector(NAMES.slice(low, high))
            for key in half:
                rows = PICKED[key]
                postings.add(key, rows[(rows >= low) & (rows < high)] - low)
            totals, _ = postings.finish()
            writer.add("a/b", "persistent", totals)
    blocks = [block for writer in reversed(writers) for block in writer.finish(store, "temporary/x")]
    found = read_tallies(store, Random(held).sample(blocks, len(blocks)))
    assert list(found) == [("a/b", "persistent")]
    column = found["a/b", "persistent"]
    assert [bytes(key) for key in column["key"]] == KEYS
    assert column["count"].tolist() == [len(PICKED[key]) for key in KEYS]
    expected = [NAMES.crc(PICKED[key]) for key in KEYS]
    assert list(zip(column["crc"].tolist(), column["joined"].tolist(), strict=True)) == expected


def test_a_changed_file_is_an_error() -> None:
    store = memory()
    writer, postings = TallyWriter(), PostingsCollector(NAMES)
    postings.add(KEYS[0], PICKED[KEYS[0]])
    writer.add("a/b", "persistent", postings.finish()[0])
    blocks = writer.finish(store, "temporary/x")
    data = bytearray(store.get_range(blocks[0].path, 0, blocks[0].stop))
    data[20] ^= 1
    store.replace(blocks[0].path, bytes(data))
    with pytest.raises(DamagedFile, match="not those that the build wrote"):
        read_tallies(store, blocks)


def test_nothing_writes_no_file() -> None:
    store = memory()
    assert TallyWriter().finish(store, "temporary/x") == []
    assert list(store.list("temporary")) == []
    assert read_tallies(store, []) == {}
