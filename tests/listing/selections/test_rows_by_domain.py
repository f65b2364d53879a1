"""Counting the names of a selection by domain."""

from __future__ import annotations

from broker_core.listing.listing import Listing
from broker_core.listing.selections.selection_search import rows_by_domain
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks


def test_names_are_counted_by_domain() -> None:
    names = [
        f"{domain}://t/n/{number}" for domain in ("persistent", "non-persistent") for number in range(30)
    ]
    with tiny_chunks(60):
        listing = Listing.from_names(NamespaceName("t", "n"), Mode.ALL, names[:-10])
    assert rows_by_domain(listing.all()) == {"persistent": 30, "non-persistent": 20}
    assert rows_by_domain(listing.range(19, 21)) == {"persistent": 1, "non-persistent": 1}
    some = listing.matching(compile_pattern("t/n/1.*", max_length=100))
    assert rows_by_domain(some) == {"persistent": 11, "non-persistent": 11}
