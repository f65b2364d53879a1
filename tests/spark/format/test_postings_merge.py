"""Postings that were divided in any way are joined to the same bytes; others are left out or refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import (
    PostingsWriter,
    StoredPostings,
    read_postings,
)
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.selector_keys import SelectorKeys

NAMES = {
    "a/b": EncodedNames.of("a/b", "persistent", [f"t{number:03}" for number in range(90)]),
    "a/c": EncodedNames.of("a/c", "persistent", ["x", "y", "z"]),
}
RUNS = [(namespace, "persistent", len(names)) for namespace, names in NAMES.items()]
KEYS = [bytes([number]) * 16 for number in range(60)]
REQUESTED = {(namespace, "persistent"): SelectorKeys.of(KEYS) for namespace in NAMES}


def picked(namespace: str, key: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Rows of all three kinds."""
    count, number = len(NAMES[namespace]), key[0]
    if number % 7 == 0:
        return np.arange(min(number, count - 1), count)
    return np.array(sorted(Random(number).sample(range(count), min(count, number))), np.int64)


def part_of(keys: Sequence[bytes], namespaces: Sequence[str] = tuple(NAMES)) -> list[StoredPostings]:
    writer = PostingsWriter()
    for namespace in namespaces:
        postings = PostingsCollector(NAMES[namespace])
        for key in Random(1).sample(keys, len(keys)):
            postings.add(key, picked(namespace, key))
        _, (collected,) = postings.finish()
        writer.add_run(namespace, "persistent", collected, SelectorKeys.of(KEYS))
    return read_postings(pa.py_buffer(b"".join(writer.finish().data)), "part")


def merged(files: Sequence[Sequence[StoredPostings]], requested: Sequence[bytes] = KEYS) -> bytes:
    parts = chain.from_iterable(files)
    made = merge_postings(RUNS, parts, dict.fromkeys(REQUESTED, SelectorKeys.of(requested)))
    return b"".join(made.data)


def test_any_division_gives_the_same_bytes() -> None:
    whole = merged([part_of(KEYS)])
    shuffled = Random(5).sample(KEYS, len(KEYS))
    for parts in (
        [KEYS[:20], KEYS[20:21], KEYS[21:]],
        [KEYS[::2], KEYS[1::2]],
        [shuffled[:30], shuffled[30:], []],
    ):
        assert merged([part_of(keys) for keys in parts]) == whole
    halves = [part_of(KEYS, ["a/b"]), part_of(KEYS[:9], ["a/c"]), part_of(KEYS[9:], ["a/c"])]
    assert merged(halves) == whole


def test_selectors_that_nobody_asks_for_are_left_out() -> None:
    some = KEYS[3:40:3]
    writer = PostingsWriter()
    for namespace, names in NAMES.items():
        postings = PostingsCollector(names)
        for key in some:
            postings.add(key, picked(namespace, key))
        _, (collected,) = postings.finish()
        writer.add_run(namespace, "persistent", collected, SelectorKeys.of(some))
    assert merged([part_of(KEYS)], some) == b"".join(writer.finish().data)


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two parts have postings of the same selector"):
        merged([part_of(KEYS), part_of(KEYS[4:5])])
    with pytest.raises(ValueError, match="another number of names"):
        merge_postings([("a/b", "persistent", 91)], part_of(KEYS, ["a/b"]), REQUESTED)
    with pytest.raises(ValueError, match="none of the segment's runs"):
        merge_postings(RUNS[:1], part_of(KEYS), REQUESTED)
