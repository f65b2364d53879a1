"""CRCs of blocks: of ranges and after changes they equal the broker's hash of the names."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.listing.chunks.block_hashes import BlockHashes, crc_of_fields
from broker_core.listing.listing_hash import TextCrc, crc_text, joined, topics_hash, without_first_comma
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples

LOCAL = [f"{number:05}{'x' * (number % 3 * 70)}" for number in range(20_000)]
NAMES = EncodedNames.of("t/n", "persistent", LOCAL)
FULL = [f"persistent://t/n/{name}" for name in NAMES.names.to_pylist()]


def hash_of(text: TextCrc) -> str:
    return crc_text(without_first_comma(text))


def test_the_crc_of_all_and_of_none() -> None:
    blocks = BlockHashes.of(NAMES.fields)
    assert hash_of(blocks.total()) == hash_of(crc_of_fields(NAMES.fields)) == topics_hash(FULL)
    assert blocks.ends[-1] == len(FULL)
    nothing = BlockHashes.of(NAMES.fields[:0])
    assert hash_of(nothing.total()) == hash_of(joined([])) == topics_hash([])


@pytest.mark.parametrize("seed", range(examples(4)))
def test_ranges(seed: int) -> None:
    pick = random.Random(seed)
    blocks = BlockHashes.of(NAMES.fields)
    for low, high in [sorted(pick.sample(range(len(FULL) + 1), 2)) for _ in range(20)] + [(256, 512), (7, 8)]:
        assert hash_of(blocks.between(NAMES.fields, low, high)) == topics_hash(FULL[low:high])


def test_texts_are_joined() -> None:
    parts = [crc_of_fields(NAMES.fields.slice(low, 333)) for low in range(0, 999, 333)]
    assert hash_of(joined(parts)) == topics_hash(FULL[:999])
    assert joined(parts[:1]) is parts[0]
    assert joined([parts[0], TextCrc(0, 0), parts[1]]) == joined(parts[:2])


@pytest.mark.parametrize("seed", range(examples(5)))
def test_blocks_after_changes(seed: int) -> None:
    pick = random.Random(seed)
    rows = sorted(pick.sample(range(len(FULL)), pick.choice([300, 5000, 12_000])))
    blocks = BlockHashes.of(NAMES.fields.take(pa.array(rows)))
    for _ in range(12):
        others = sorted(set(pick.sample(range(len(FULL)), pick.randint(0, 3))) - set(rows))
        gone = sorted(pick.sample(range(len(rows)), pick.randint(0, 3)))
        if pick.random() < 0.2:  # a block that goes as a whole, for instance
            begin = pick.randrange(len(rows))
            gone = list(range(begin, min(begin + 3, len(rows))))
        put = np.searchsorted(rows, others).tolist()
        kept = set(rows) - {rows[at] for at in gone}
        rows = sorted(kept | set(others))
        fields = NAMES.fields.take(pa.array(rows))
        after = blocks.after(gone, put, fields)
        if after is None:
            assert 2 * (len(gone) + len(put)) > len(blocks.ends)
            after = BlockHashes.of(fields)
        blocks = after
        assert blocks.ends[-1] == len(rows)
        assert hash_of(blocks.total()) == topics_hash(FULL[row] for row in rows)
        assert hash_of(blocks.between(fields, 5, 290)) == topics_hash(FULL[row] for row in rows[5:290])


def test_blocks_stay_small_where_names_are_put_again_and_again() -> None:
    rows = list(range(0, 20_000, 10))
    blocks = BlockHashes.of(NAMES.fields.take(pa.array(rows)))
    for row in range(1001, 1010):  # all in one place
        for step in range(0, 9000, 1000):
            at = int(np.searchsorted(rows, row + step))
            rows.insert(at, row + step)
            made = blocks.after([], [at], NAMES.fields.take(pa.array(rows)))
            assert made is not None
            blocks = made
    sizes = np.diff([0, *blocks.ends])
    assert sizes.min() > 0
    assert sizes.max() <= 512
    assert hash_of(blocks.total()) == topics_hash(FULL[row] for row in rows)


@pytest.mark.parametrize("chunk_bytes", [1024 * 1024, 20_000])
def test_rows_beside_an_answer_are_not_looked_at(chunk_bytes: int) -> None:
    fields = NAMES.fields.to_pylist()
    fields[19_000] = b"\x12\x7fbroken"  # in a part of its own, which the answer has nothing of
    with tiny_chunks(chunk_bytes):
        listing = Listing.from_encoded("t/n", Mode.PERSISTENT, fields_column(fields))
        answer = listing.range(0, 12_000).spliced(np.array([7]), [], listing.range(0, 0))
        assert answer.topics_hash == topics_hash(FULL[:7] + FULL[8:12_000])
        with pytest.raises(InvalidListing):
            listing.range(0, 20_000).spliced(np.array([7]), [], listing.range(0, 0))


def fields_column(fields: list[bytes]) -> pa.LargeBinaryArray:
    return pa.array(fields, pa.large_binary())
