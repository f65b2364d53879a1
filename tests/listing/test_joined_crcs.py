"""CRCs of texts that follow each other: of all of them, and after changes, they equal the CRC of the one long text."""

from __future__ import annotations

from collections.abc import Sequence

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import (
    JoinedCrcs,
    TextCrc,
    joined,
    with_first_comma,
    without_first_comma,
)

TEXTS = st.lists(st.binary(max_size=300), max_size=20)


def crcs_of(texts: Sequence[bytes]) -> tuple[list[int], list[int]]:
    return [google_crc32c.value(text) for text in texts], [len(text) for text in texts]


def whole(texts: Sequence[bytes]) -> TextCrc:
    text = b"".join(texts)
    return TextCrc(google_crc32c.value(text), len(text))


@given(TEXTS)
def test_all_texts_are_one(texts: list[bytes]) -> None:
    assert JoinedCrcs.of(*crcs_of(texts)).total == whole(texts)
    assert joined([TextCrc(*each) for each in zip(*crcs_of(texts), strict=True)]) == whole(texts)


@given(TEXTS, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), TEXTS), max_size=4))
def test_texts_are_replaced(texts: list[bytes], changes: list[tuple[int, int, list[bytes]]]) -> None:
    crcs = JoinedCrcs.of(*crcs_of(texts))
    for one, other, others in changes:
        first, end = sorted((min(one, len(texts)), min(other, len(texts))))
        before, former = crcs, whole(texts)
        texts = [*texts[:first], *others, *texts[end:]]
        crcs = crcs.replaced(first, end, *crcs_of(others))
        assert crcs.total == whole(texts)
        assert before.total == former, "what it was before stays as it was"


@pytest.mark.parametrize("grown", [-70_000, -256, -1, 0, 1, 15, 16, 65_536])
def test_the_texts_in_front_are_moved_by_the_difference(grown: int) -> None:
    texts = [b"first", b"second" * 1000, b"x" * 100_000, b"last"]
    crcs = JoinedCrcs.of(*crcs_of(texts))
    other = b"y" * (100_000 + grown)
    assert crcs.replaced(2, 3, *crcs_of([other])).total == whole([*texts[:2], other, texts[3]])


def test_the_hash_has_no_comma_at_the_beginning() -> None:
    text = b",persistent://t/n/a,persistent://t/n/b"
    crc = TextCrc(google_crc32c.value(text), len(text))
    assert without_first_comma(crc) == google_crc32c.value(text[1:])
    assert with_first_comma(google_crc32c.value(text[1:]), len(text)) == crc
    assert without_first_comma(TextCrc(0, 0)) == 0
