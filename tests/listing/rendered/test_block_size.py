from __future__ import annotations

from broker_core.listing.rendered.pieces import BLOCK, BlockSize


def test_it_is_half_a_mebibyte_until_it_is_changed() -> None:
    size = BlockSize()
    assert size.bytes == BLOCK == 512 * 1024
    size.bytes = 1
    assert size.bytes == 1
