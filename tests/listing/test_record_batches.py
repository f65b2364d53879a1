"""Record batches of a listing."""

from __future__ import annotations

import pytest

from broker_core.listing.listing import data_of, part_of
from tests.support.topics import listing_of, persistent

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


def test_batches_are_the_rows_in_order() -> None:
    listing = listing_of(persistent("a", "b-partition-1", "c", "d"))
    some = listing.rows([0, 1, 3])
    batches = list(part_of(some).batches(data_of(listing), ("matched", "name"), 2))
    assert [batch.to_pydict() for batch in batches] == [
        {"matched": ["t/n/a", "t/n/b"], "name": persistent("a", "b-partition-1")},
        {"matched": ["t/n/d"], "name": persistent("d")},
    ]
    (fields,) = listing.range(2, 3).batches("field")
    assert fields.column("field")[0].as_py()[2:] == b"persistent://t/n/c"


@pytest.mark.parametrize(("columns", "most"), [((), 1), (("hash",), 1), (("name",), 0)])
def test_what_is_asked_for_wrongly(columns: tuple[str, ...], most: int) -> None:
    listing = listing_of(persistent("a"))
    with pytest.raises(ValueError, match=r"columns are|rows must be"):
        list(listing.batches(*columns, rows=most))
