"""The hash of any stretches of a listing, from blocks or name by name: the broker's own of the names."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core.block_crcs import BlockCrcs, text_crcs
from broker_core.name_columns import column_data
from broker_core.topics_hash import crc_text, topics_hash

LOCAL = [f"{number:05}{'x' * (number % 3 * 70)}" for number in range(5000)]
NAMES = EncodedNames.of("t/n", "persistent", LOCAL)
FULL = [f"persistent://t/n/{name}" for name in NAMES.names.to_pylist()]


@pytest.mark.parametrize("seed", range(20))
def test_stretches_have_the_hash_of_their_names(seed: int) -> None:
    pick = random.Random(seed)
    crcs = BlockCrcs(*column_data(NAMES.fields))
    for _ in range(10):
        edges = sorted(pick.sample(range(len(FULL) + 1), 2 * pick.randint(1, 4)))
        rows = list(zip(edges[::2], edges[1::2], strict=True))
        pieces: list[pa.LargeBinaryArray | tuple[int, int]] = [
            (low, high) if pick.random() < 0.7 else NAMES.fields.slice(low, high - low) for low, high in rows
        ]
        assert crc_text(crcs.crc(pieces)) == topics_hash(
            name for low, high in rows for name in FULL[low:high]
        )


def test_whole_blocks_nothing_and_a_slice() -> None:
    crcs = BlockCrcs(*column_data(NAMES.fields))
    for low, high in ((0, len(FULL)), (1024, 2048), (1023, 2049), (4096, 5000), (0, 1)):
        assert crc_text(crcs.crc([(low, high)])) == topics_hash(FULL[low:high])
    assert crcs.crc([]) == 0
    part = NAMES.fields.slice(100, 3000)
    assert crc_text(BlockCrcs(*column_data(part)).crc([(5, 2900)])) == topics_hash(FULL[105:3000])


def test_texts_of_pieces() -> None:
    crcs, sizes = text_crcs([NAMES.fields.slice(3, 2), NAMES.fields.slice(9, 1)])
    assert [crc_text(crc) for crc in crcs.tolist()] == [topics_hash(FULL[3:5]), topics_hash(FULL[9:10])]
    assert sizes.tolist() == [len(",".join(FULL[3:5])), len(FULL[9])]
    assert [len(part) for part in text_crcs([])] == [0, 0]
