"""The digest of keys says which they are, and nothing of their order."""

from __future__ import annotations

from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys

KEYS = [bytes([number]) * 16 for number in range(3)]


def test_the_order_does_not_count_nor_how_often_a_key_comes() -> None:
    keys = SelectorKeys.of(KEYS)
    assert keys == SelectorKeys.of([KEYS[2], KEYS[0], KEYS[1], KEYS[0]])
    assert (keys.keys, len(keys.digest)) == (frozenset(KEYS), 64)


def test_other_keys_have_another_digest() -> None:
    digests = {SelectorKeys.of(KEYS[:count]).digest for count in range(4)}
    assert len(digests) == 4
    assert SelectorKeys.of([]) == NO_SELECTORS
