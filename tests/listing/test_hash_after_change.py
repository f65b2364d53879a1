"""The hash after changes, by checkpoints or name by name, equals the broker's hash of the names."""

from __future__ import annotations

import random
import threading

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.listing.hash_after_change import crc_of_fields, crc_of_spliced
from broker_core.listing.listing_data import ListingData
from broker_core.listing.topics_hash import crc_text, topics_hash
from broker_core.names import NamespaceName
from broker_core.names.name_columns import column_data

NAMESPACE = NamespaceName.parse("t/n")
LOCAL = [f"{number:05}{'x' * (number % 3 * 70)}" for number in range(20_000)]
NAMES = EncodedNames.of("t/n", "persistent", LOCAL)
FULL = [f"persistent://t/n/{name}" for name in NAMES.names.to_pylist()]


def data_of(fields: pa.LargeBinaryArray) -> ListingData:
    return ListingData.encoded(NAMESPACE, Mode.PERSISTENT, *column_data(fields))


def spliced(
    listing: ListingData, stretches: list[tuple[bool, int, int]]
) -> tuple[pa.LargeBinaryArray, list[tuple[int, int, int]]]:
    """Stretches of the names one after the other, and which of them are rows of the listing."""
    kept, position = [], 0
    for is_kept, low, high in stretches:
        if is_kept:
            kept.append((position, low, high))
        position += high - low
    return pa.concat_arrays([NAMES.fields.slice(low, high - low) for _, low, high in stretches]), kept


@pytest.mark.parametrize("seed", range(20))
def test_stretches_have_the_hash_of_their_names(seed: int) -> None:
    pick = random.Random(seed)
    listing = data_of(NAMES.fields)
    for _ in range(6):  # the later ones from marks that are there
        edges = sorted(pick.sample(range(len(FULL) + 1), 2 * pick.randint(1, 30)))
        if pick.random() < 0.5:
            edges[0], edges[-1] = 0, len(FULL)
        stretches = [
            (pick.random() < 0.8, low, high) for low, high in zip(edges[::2], edges[1::2], strict=True)
        ]
        crc = crc_of_spliced(*spliced(listing, stretches), listing)
        assert crc_text(crc) == topics_hash(name for _, low, high in stretches for name in FULL[low:high])


def test_whole_blocks_nothing_and_a_slice() -> None:
    listing = data_of(NAMES.fields)
    for low, high in ((0, 20_000), (4096, 16_384), (4095, 16_385), (64, 10_000), (9_999, 20_000)):
        crc = crc_of_spliced(*spliced(listing, [(True, low, high)]), listing)
        assert crc_text(crc) == topics_hash(FULL[low:high])
    assert crc_of_fields(NAMES.fields[:0]) == crc_of_spliced(NAMES.fields[:0], [], listing) == 0
    part = NAMES.fields.slice(100, 15_000)
    listing = data_of(part)
    assert crc_text(crc_of_spliced(part.slice(5, 14_000), [(0, 5, 14_005)], listing)) == topics_hash(
        FULL[105:14_105]
    )


def test_marks_are_made_once_and_within_what_a_listing_may_remember() -> None:
    listing = data_of(NAMES.fields)
    everything = spliced(listing, [(True, 0, 20_000)])
    crc_of_spliced(*everything, listing)
    made = listing.memo.keys()
    assert len(made) == 5
    marks = [listing.memo.get(key) for key in made]
    crc_of_spliced(*everything, listing)
    assert all(listing.memo.get(key) is mark for key, mark in zip(made, marks, strict=True))
    assert listing.memo.nbytes <= listing.memo.limit
    listing.memo.close()  # where nothing may be remembered the hash is the same
    assert crc_text(crc_of_spliced(*everything, listing)) == topics_hash(FULL)


def test_threads_make_the_same_marks() -> None:
    listing, found = data_of(NAMES.fields), list[int]()
    everything = spliced(listing, [(True, 0, 9_000), (True, 9_001, 20_000)])
    threads = [
        threading.Thread(target=lambda: found.append(crc_of_spliced(*everything, listing))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [crc_text(crc) for crc in found] == [topics_hash(FULL[:9_000] + FULL[9_001:])] * 4


def test_rows_beside_an_answer_are_not_looked_at() -> None:
    fields = NAMES.fields.to_pylist()
    fields[19_000] = b"\x12\x7fbroken"  # in a block of its own, which the answer has nothing of
    listing = Listing.from_encoded("t/n", Mode.PERSISTENT, pa.array(fields, pa.large_binary()))
    answer = listing.range(0, 16_000).spliced(np.array([7]), [], listing.range(0, 0))
    assert answer.topics_hash == topics_hash(FULL[:7] + FULL[8:16_000])
    with pytest.raises(InvalidListing):
        listing.range(0, 20_000).spliced(np.array([7]), [], listing.range(0, 0))
