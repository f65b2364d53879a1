from __future__ import annotations

import pyarrow as pa
import pytest

from broker_core import Listing, Mode, Page, Position
from broker_core.errors import ListingFailed
from broker_core.pipeline.listers.verify_answer_claims import check_order, check_page, surely_whole

BASE = "persistent://t/n/"


def column(*names: str) -> pa.LargeStringArray:
    return pa.array([BASE + name for name in names], pa.large_string())


def listing(*names: str) -> Listing:
    return Listing.from_names("t/n", Mode.PERSISTENT, column(*names))


def at(name: str) -> Position:
    return Position.of(BASE + name)


def test_the_order_of_a_page() -> None:
    check_order(column())
    check_order(column("a", "a-partition-2", "a-partition-10", "a!", "a\U0001f600", "a\uffee"))
    for names in (("b", "a"), ("a", "a"), ("a-partition-1", "a"), ("a\uffee", "a\U0001f600")):
        with pytest.raises(ListingFailed, match="out of order"):
            check_order(column(*names))


def test_a_page_is_within_its_bounds() -> None:
    selection = listing("b", "c-partition-10", "c-partition-9").all()
    check_page(selection, Page(at("b"), 3), at("c-partition-11"))
    check_page(selection, Page(None, 3), at("d"))
    with pytest.raises(ListingFailed, match="at least one topic"):
        check_page(listing().all(), Page(at("b"), 3), at("c"))
    for page, following, says in [
        (Page(None, 2), at("d"), "3 topics for a page of 2"),
        (Page(at("b-"), 3), at("d"), "'persistent://t/n/b' for a page that begins at 'persistent://t/n/b-'"),
        (Page(at("b"), 3), at("c-partition-10"), "'persistent://t/n/c-partition-10', and says"),
        (Page(at("b"), 3), at("a"), "the next page begins at 'persistent://t/n/a'"),
        (Page(None, 3), Position("persistent://z/z/q"), "next page of t/n begins at 'persistent://z/z/q'"),
    ]:
        with pytest.raises(ListingFailed) as raised:
            check_page(selection, page, following)
        assert says in raised.value.message


@pytest.mark.parametrize(
    ("names", "page", "whole"),
    [
        ("abc", None, True),
        ("abc", Page(None, 10), True),
        ("abc", Page(None, 3), False),  # or just the first three
        ("abc", Page(None, 2), True),
        ("abc", Page(at("b"), 10), True),  # "a" is on no page from "b" on
        ("bc", Page(at("b"), 10), False),
        ("", Page(at("b"), 10), False),
        ("", Page(None, 10), True),
    ],
)
def test_what_can_only_be_the_whole(names: str, page: Page | None, whole: bool) -> None:
    assert surely_whole(listing(*names).all(), page) is whole
