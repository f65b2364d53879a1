"""Fields under another tag: the same names, byte for byte, in blocks."""

from __future__ import annotations

import pytest

from broker_core.listing.fields.topic_field import varint
from broker_core.listing.listing import Listing
from broker_core.listing.selections import selection_search as module
from broker_core.listing.selections.selection_search import tagged_fields
from broker_core.names import Mode


@pytest.mark.parametrize("rows", [1, 3, 4096])
def test_only_the_tag_is_another_one(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(module, "_ROWS", rows)
    names = [f"persistent://a/b/{'x' * number}ä" for number in range(1, 300, 7)]
    listing = Listing.from_names("a/b", Mode.PERSISTENT, names)
    for selection in (listing.all(), listing.all().range(2, 9), listing.all().range(0, 0)):
        expected = b"".join(
            b"\x1a" + varint(len(name.encode())) + name.encode() for name in selection.names.to_pylist()
        )
        reader = tagged_fields(selection, 0x1A)
        assert reader.left == selection.fields_size == len(expected)
        assert bytes(reader.read_all()) == expected
    assert bytes(listing.all().body()).count(b"\x1a") == 0  # the listing has its own tags
