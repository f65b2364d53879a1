from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.kafka.calls.described_pages import DescribedPages


def row(name: str, *partitions: int, topic_id: int = 1, error_code: int = 0) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "partitions": list(partitions), "error_code": error_code}


def page(*rows: dict[str, Any], after: tuple[str, int] | None = None) -> dict[str, Any]:
    cursor = None if after is None else {"topic_name": after[0], "partition_index": after[1]}
    return {"topics": list(rows), "next_cursor": cursor}


def asked(pages: DescribedPages) -> tuple[list[str], tuple[str, int] | None] | None:
    request = pages.request()
    if request is None:
        return None
    cursor = request["cursor"]
    names = [each["name"] for each in request["topics"]]
    return names, None if cursor is None else (cursor["topic_name"], cursor["partition_index"])


def test_a_topic_over_several_pages() -> None:
    pages = DescribedPages(["b", "c", "a"])
    assert asked(pages) == (["a", "b", "c"], None)
    pages.take(page(row("a", 0), row("b", 0, 1), after=("b", 2)))
    assert asked(pages) == (["b", "c"], ("b", 2))
    pages.take(page(row("b", 2), after=("c", 0)))
    assert asked(pages) == (["c"], None)
    pages.take(page(row("c", 0)))
    assert asked(pages) is None
    assert {name: found["partitions"] for name, found in pages.found.items()} == {
        "a": [0],
        "b": [0, 1, 2],
        "c": [0],
    }


def test_a_topic_that_was_made_anew_between_two_pages_is_asked_for_again() -> None:
    pages = DescribedPages(["a", "b"])
    pages.take(page(row("a", 0, 1), after=("a", 2)))
    pages.take(page(row("a", 2, topic_id=2), row("b", 0)))
    assert asked(pages) == (["a"], None)
    pages.take(page(row("a", 0, 1, 2, topic_id=2)))
    assert asked(pages) is None
    assert pages.found["a"]["partitions"] == [0, 1, 2]
    assert pages.found["a"]["topic_id"] == 2


def test_a_topic_that_was_deleted_between_two_pages_has_its_error() -> None:
    pages = DescribedPages(["a"])
    pages.take(page(row("a", 0, 1), after=("a", 2)))
    pages.take(page(row("a", error_code=3)))
    assert asked(pages) is None
    assert pages.found["a"]["error_code"] == 3


def test_rows_come_in_any_order_and_more_than_once() -> None:
    pages = DescribedPages(["a", "b", "c"])
    pages.take(page(row("a", 0), row("c", error_code=29), after=("b", 0)))
    pages.take(page(row("b", 0), row("c", error_code=29)))
    assert asked(pages) is None
    assert set(pages.found) == {"a", "b", "c"}


@pytest.mark.parametrize("after", [("b", 2), ("b", 1), ("a", 7), ("b", -1), ("bb", 0), ("z", 0)])
def test_a_cursor_that_does_not_go_on_is_no_way_to_loop(after: tuple[str, int]) -> None:
    pages = DescribedPages(["a", "b", "c"])
    pages.take(page(row("a", 0), after=("b", 2)))
    with pytest.raises(UnexpectedAnswer, match="would begin at"):
        pages.take(page(after=after))


def test_the_first_cursor_goes_on_too() -> None:
    with pytest.raises(UnexpectedAnswer):
        DescribedPages(["a"]).take(page(after=("a", 0)))


def test_no_names() -> None:
    assert DescribedPages([]).request() is None
