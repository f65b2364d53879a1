from __future__ import annotations

import random

from broker_core.listing.fields.search_fields import search_fields
from broker_core.listing.fields.topic_field import topic_field, walk_fields


def test_it_finds_what_a_walk_finds() -> None:
    chosen = random.Random(7)
    names = [f"persistent://a/b/{'x' * chosen.randrange(1, 300)}{chr(0x12)}{index}" for index in range(3000)]
    data = memoryview(b"\x08\x07" + b"".join(map(topic_field, names)) + b"\x18\x01")
    walked = walk_fields(data, 2, len(data))
    found = search_fields(data, 2, len(data))
    assert found is not None
    assert (found[0].tolist(), found[1].tolist(), found[2]) == walked


def test_what_cannot_be_told_apart_is_none() -> None:
    fields = b"".join(topic_field(name) for name in ("other://a/b/c", "persistent://a/b/c"))
    assert search_fields(memoryview(fields), 0, len(fields)) is None
    assert search_fields(memoryview(b"\x08\x07" * 4), 0, 8) is None
