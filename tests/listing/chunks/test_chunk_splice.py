"""A chunk after a change: names, hashes, forms and properties are those of a chunk that was made anew."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from broker_core.listing.chunks.build_chunks import build_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_splice import is_quick_to_splice, spliced_chunk
from broker_core.listing.listing import listing_of as listing_of_data
from broker_core.listing.listing_data import ListingData
from broker_core.names import Mode
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples
from tests.support.one_test import in_one_test
from tests.support.topics import NAMESPACE, assert_listing, visible

LETTERS = "a😀\ue000é"
KINDS = {
    "plain": lambda pick: f"n{pick.randint(0, 5000):04}",
    "partitions": lambda pick: f"n{pick.randint(0, 40)}-partition-{pick.randint(0, 12)}",
    "moved": lambda pick: f"{pick.choice(LETTERS)}{pick.randint(0, 900)}",
    "long": lambda pick: f"n{pick.randint(0, 900)}{'x' * pick.choice([0, 100, 2000])}",
}


def chunk_of(names: list[str]) -> Chunk:
    properties = {"persistent": {"team": pa.array([name[-1:] for name in names], pa.large_string())}}
    (chunk,) = build_chunks(NAMESPACE, pa.array(names, pa.large_string()), None, properties)
    return chunk


def assert_chunk(chunk: Chunk, names: list[str]) -> None:
    shown = visible([f"persistent://t/n/{name}" for name in names])
    assert_listing(listing_of_data(ListingData(NAMESPACE, Mode.PERSISTENT, [chunk])), shown)
    assert chunk.properties["team"].column().to_pylist() == [name[-1:] for name in shown]


@in_one_test("kind", KINDS)
@in_one_test("seed", range(examples(2)))
@in_one_test("count", [3, 120])
def test_it_is_the_chunk_of_the_names(kind: str, seed: int, count: int) -> None:
    pick = random.Random(seed)
    names = sorted({KINDS[kind](pick) for _ in range(240 if kind != "long" else 40)})
    chunk = chunk_of(names)
    if pick.random() < 0.7:
        _ = chunk.forms  # else they are made when they are first asked for
    for _ in range(4):
        shown = [name.rpartition("/")[2] for name in chunk.names(0, chunk.size).to_pylist()]
        gone = sorted(pick.sample(range(len(shown)), min(pick.randint(0, count), len(shown) - 1)))
        fresh = sorted({KINDS[kind](pick) for _ in range(pick.randint(0, count))} - set(shown))
        if pick.random() < 0.3:
            fresh = sorted(
                {*fresh, "zz-partition-7"} - set(shown)
            )  # the first partition of a plain chunk, too
        added = chunk_of(fresh) if fresh else None
        order = visible([f"persistent://t/n/{name}" for name in {*shown, *fresh}])
        places = {name.rpartition("/")[2]: place for place, name in enumerate(order)}
        put = []
        if added is not None:
            own = [name.rpartition("/")[2] for name in added.names(0, added.size).to_pylist()]
            new = set(fresh)
            before = np.cumsum([each.rpartition("/")[2] not in new for each in order])
            put = [int(before[places[name]]) for name in own]
        chunk = spliced_chunk(chunk, np.array(gone, np.int64), np.array(put, np.int64), added)
        lost = set(gone)
        assert_chunk(chunk, [*(name for row, name in enumerate(shown) if row not in lost), *fresh])


def test_the_chunk_before_stays_as_it_was() -> None:
    names = [f"{number:03}" for number in range(500)]
    chunk = chunk_of(names)
    after = spliced_chunk(chunk, np.array([3]), np.array([0, 500]), chunk_of(["!", "zz"]))
    assert_chunk(chunk, names)
    assert_chunk(after, ["!", *names[:3], *names[4:], "zz"])


def test_that_no_name_has_a_line_feed_stays_known() -> None:
    chunk = chunk_of(["b", "c"])
    none = np.array([], np.int64)
    assert spliced_chunk(chunk, np.array([0]), none, None).known_newline is None, "nobody has looked"
    assert not chunk.has_newline
    assert spliced_chunk(chunk, np.array([0]), none, None).known_newline is False
    assert spliced_chunk(chunk, none, np.array([0]), chunk_of(["a"])).known_newline is False
    assert spliced_chunk(chunk, none, np.array([0]), chunk_of(["a\nb"])).known_newline is not False


def test_of_a_small_chunk_it_is_found_out_whether_it_is_plain() -> None:
    whole = chunk_of([f"n{number:05}" for number in range(5000)])
    for rows, found in ((100, True), (5000, False)):  # of a large one that would read all of it
        asked_never = Chunk(NAMESPACE, "persistent", whole.fields, whole.field_offsets[: rows + 1])
        made = spliced_chunk(asked_never, np.array([7]), np.array([], np.int64), None)
        assert made.is_searchable is found


def test_it_is_quick_where_copying_is_all_there_is_to_do() -> None:
    small = chunk_of([f"n{number:03}" for number in range(100)])
    assert is_quick_to_splice(small)
    names = [f"n{number:05}" for number in range(5000)]
    large = chunk_of(names)
    assert not is_quick_to_splice(large), "it is not hashed"
    _ = large.blocks
    assert is_quick_to_splice(large)
    assert is_quick_to_splice(spliced_chunk(large, np.array([3]), np.array([], np.int64), None))
    with tiny_chunks(large.fields_size // 2):
        assert not is_quick_to_splice(large), "it will be cut"
    partitions = chunk_of([f"n{number:05}-partition-1" for number in range(5000)])
    _ = partitions.blocks, partitions.forms
    assert not is_quick_to_splice(partitions)
    for chunk in (small, large):
        claimed = Chunk.claimed(NAMESPACE, "persistent", chunk.fields, chunk.field_offsets)
        assert not is_quick_to_splice(claimed), "its names are checked first"
        claimed.check(0, claimed.size)
        _ = claimed.blocks, claimed.is_plain
        assert is_quick_to_splice(claimed)
