from __future__ import annotations

import uuid

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.wire.kafka import ZERO_ID


class Units:
    """Some units of one topic."""

    def __init__(self, name: str, size: int, *, stops: bool = True) -> None:
        self.name = name
        self.size = size
        self.stops = stops
        self.taken: int | None = None

    def take(self, count: int) -> None:
        self.taken = count

    def place(self, count: int) -> UnitPlace:
        return UnitPlace((self.name, count), uuid.UUID(int=9))


def filled(limit: int, *runs: Units) -> tuple[list[int | None], object]:
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), limit)
    page.fill(runs)
    return [run.taken for run in runs], page.next_cursor


def test_a_page_ends_where_its_limit_is_used_up() -> None:
    cursor = {"topic_name": "b", "partition_index": 2, "topic_id": uuid.UUID(int=9)}
    assert filled(5, Units("a", 3), Units("b", 4), Units("c", 1)) == ([3, 2, None], cursor)
    at_the_end = cursor | {"partition_index": 0}
    assert filled(3, Units("a", 3), Units("b", 4)) == ([3, None], at_the_end)
    assert filled(7, Units("a", 3), Units("b", 4)) == ([3, 4], None)


def test_rows_of_one_unit_are_never_split_and_what_is_free_can_begin_a_page() -> None:
    assert filled(1, Units("a", 1), Units("a", 0, stops=False)) == ([1, 0], None)
    taken, cursor = filled(1, Units("a", 1), Units("b", 0))
    assert taken == [1, None]
    assert cursor is not None
    assert filled(2, Units("a", 1), Units("b", 0)) == ([1, 0], None)


def test_cursors_by_kafkas_own_rules_have_no_ids() -> None:
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), 1, as_kafka=True)
    page.fill([Units("a", 2)])
    assert page.next_cursor == {"topic_name": "a", "partition_index": 1}


def test_a_page_that_begins_anew_has_no_end_and_all_its_room() -> None:
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), 2, UnitPlace(("a", 1), uuid.UUID(int=8)))
    page.fill([Units("a", 3)])
    page.begin_anew(UnitPlace(("a", 0), uuid.UUID(int=9)))
    assert page.start == UnitPlace(("a", 0), uuid.UUID(int=9))
    assert page.next_cursor is None
    assert page.left == 2


def test_topics_are_noted_that_have_a_name_and_an_id() -> None:
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), 1)
    for name, number in (("a", 1), (None, 2), ("b", 0)):
        page.note(name, uuid.UUID(int=number))
    assert (page.topic_ids, page.names) == ({"a": uuid.UUID(int=1)}, {uuid.UUID(int=1): "a"})
    assert ZERO_ID not in page.names
