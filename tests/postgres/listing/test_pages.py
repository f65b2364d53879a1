"""Pages of names, and their last row."""

from __future__ import annotations

import pytest

from broker_core_postgres.listing.pages import NamesPage, PageTooLarge
from tests.postgres.listing.lister_setup import page


def test_a_page_of_a_row() -> None:
    read = NamesPage.of({"names": 2, "size": 3, "persistent": b"/a/b", "other": None})
    assert (read.names, read.persistent, read.other, read.full) == (2, b"/a/b", b"", False)
    assert NamesPage.of({"names": 0, "size": 0, "persistent": None, "other": None}).names == 0
    with pytest.raises(PageTooLarge) as large:
        NamesPage.of({"names": 2, "size": 3, "persistent": None, "other": None})
    assert large.value.size == 3


def test_the_last_row_of_a_page() -> None:
    for by_matched in (False, True):
        last = page("a", "b-partition-3").last(by_matched=by_matched)
        assert last == ("b", "persistent", "b-partition-3")
        assert page(other=("x",)).last(by_matched=by_matched) == ("x", "non-persistent", "x")
    both = page("a", other=("x",))
    assert both.last(by_matched=False) == ("a", "persistent", "a")
    assert both.last(by_matched=True) == ("x", "non-persistent", "x")
    same = page("a-partition-0", other=("a-partition-1",))
    assert same.last(by_matched=True) == ("a", "persistent", "a-partition-0")
    high = page("\U0001f600", other=("\uffff",))
    assert high.last(by_matched=True)[0] == "\U0001f600", "the order of bytes, not that of UTF-16"
