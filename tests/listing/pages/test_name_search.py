from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core import Listing, Mode, Selection
from broker_core.listing.listing import data_of, part_of
from broker_core.listing.pages.names_of_topic import NameSearch
from broker_core.patterns import compile_pattern

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400

NAMES = sorted(
    f"{domain}://t/n/{local}"
    for domain in ("persistent", "non-persistent")
    for local in ["a", "a!", "b-partition-1", *(f"x{number:03d}" for number in range(200))]
)


def selections() -> list[Selection]:
    listing = Listing.from_names("t/n", Mode.ALL, NAMES)
    return [
        listing.all(),
        listing.range(17, 301),
        listing.range(5, 5),
        listing.matching(compile_pattern("t/n/.*[37]")),
        listing.rows(np.array([3, 4, 5, 300])),
    ]


@pytest.mark.parametrize("number", range(5))
def test_places_of_names_are_those_in_the_sorted_column(number: int) -> None:
    selection = selections()[number]
    search = NameSearch(data_of(selection.listing), part_of(selection))
    names = selection.names.to_pylist()
    assert len(search) == len(names)
    assert [search.name(place).decode() for place in range(len(names))] == names
    for name in [*NAMES, "a", "z", "persistent://t/n/x1", "non-persistent://t/n/~"]:
        assert search.find(name.encode()) == sum(each < name for each in names)


def test_names_outside_of_the_selection_are_not_looked_at() -> None:
    names = [f"persistent://t/n/x{number:05d}" for number in range(12_288)]
    fields = Listing.from_names("t/n", Mode.PERSISTENT, names).all().column().to_pylist()
    fields[9216] = fields[0]  # where a search of all names looks second
    listing = Listing.from_encoded("t/n", Mode.PERSISTENT, pa.array(fields, pa.large_binary()))
    selection = listing.range(4200, 8000)
    selection.check()
    search = NameSearch(data_of(listing), part_of(selection))
    assert [search.find(names[place].encode()) for place in (0, 4200, 7000, 12_000)] == [0, 0, 2800, 3800]
