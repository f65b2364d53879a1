from __future__ import annotations

from typing import Any

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_rows import Taken, item_runs, items_of, message_of, refusal_of
from broker_core.servers.kafka.pages.page_shapes import PageShape, shape_of
from broker_core.wire.kafka import (
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_TRANSACTIONS,
    Api,
    ErrorCode,
    Fields,
)


def shape(api: Api, version: int) -> PageShape:
    found = shape_of(api, version)
    assert found is not None
    return found


def paged(api: Api, version: int, answer: Fields, limit: int, start: Any = None) -> tuple[Fields, Any]:
    """A page of an answer, and the start of the next: what a cluster with groups and producers would have."""
    kind = shape(api, version)
    page = AnswerPage(kind.fields, kind.beginning, limit, None if start is None else UnitPlace(start))
    taken: list[Taken] = []
    page.fill(item_runs(kind, items_of(kind, kind.answered, answer, page), page.start, taken, taken))
    return message_of(answer, kind.answered, taken), None if page.following is None else page.following.key


GROUPS: Fields = {
    "groups": [
        {"group_id": "b", "state": "Stable", "members": [{"member_id": "n"}, {"member_id": "m"}]},
        {"group_id": "a", "members": []},
        {"group_id": "b", "again": True, "members": [{"member_id": "m"}]},
    ]
}


def test_members_are_units_and_an_empty_group_is_one() -> None:
    page, following = paged(DESCRIBE_GROUPS, 5, GROUPS, 2)
    assert page == {
        "groups": [
            {"group_id": "a", "members": []},
            {"group_id": "b", "state": "Stable", "members": [{"member_id": "m"}]},
            {"group_id": "b", "again": True, "members": [{"member_id": "m"}]},
        ]
    }
    assert following == ("b", "n")
    page, following = paged(DESCRIBE_GROUPS, 5, GROUPS, 2, following)
    assert page == {"groups": [{"group_id": "b", "state": "Stable", "members": [{"member_id": "n"}]}]}
    assert following is None


def test_producers_come_newest_first_and_a_partition_without_any_is_one() -> None:
    ids = [3, 2**62, 5]
    rows = [
        {"partition_index": 1, "active_producers": []},
        {"partition_index": 0, "active_producers": [{"producer_id": each} for each in ids]},
    ]
    answer = {"topics": [{"name": "a", "partitions": rows}]}
    found = []
    start: Any = None
    while True:
        page, start = paged(DESCRIBE_PRODUCERS, 0, answer, 1, start)
        ((row,),) = ([*topic["partitions"]] for topic in page["topics"])
        found.append((row["partition_index"], [each["producer_id"] for each in row["active_producers"]]))
        if start is None:
            break
    assert found == [(0, [2**62]), (0, [5]), (0, [3]), (1, [])]


def test_transactions_are_ordered_by_their_producers_first() -> None:
    rows = [
        {"transactional_id": name, "producer_id": number} for name, number in (("b", 1), ("a", 1), ("c", 9))
    ]
    page, following = paged(LIST_TRANSACTIONS, 2, {"transaction_states": rows}, 2)
    assert [row["transactional_id"] for row in page["transaction_states"]] == ["c", "a"]
    assert following == ("b", 1)
    page, following = paged(LIST_TRANSACTIONS, 2, {"transaction_states": rows}, 2, following)
    assert ([row["transactional_id"] for row in page["transaction_states"]], following) == (["b"], None)


def test_an_error_stands_at_the_top_or_in_each_row_that_was_asked_for() -> None:
    def refused(api: Api, version: int, body: Fields) -> Fields:
        return refusal_of(api, shape(api, version), body, ErrorCode.INVALID_REQUEST, "no")

    assert refused(LIST_GROUPS, 5, {}) == {"error_code": 42}
    asked = {
        "topics": [{"name": "a", "partitions": [{"partition_index": 3}]}, {"name": "b", "partitions": []}]
    }
    assert refused(LIST_OFFSETS, 9, asked) == {
        "topics": [
            {"name": "a", "partitions": [{"partition_index": 3, "error_code": 42}]},
            {"name": "b", "partitions": [{"error_code": 42}]},
        ]
    }
    assert refused(DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["t"]}) == {
        "transaction_states": [{"transactional_id": "t", "error_code": 42}]
    }
    assert refused(DESCRIBE_GROUPS, 6, {"groups": ["g"]}) == {
        "groups": [{"group_id": "g", "error_code": 42, "error_message": "no"}]
    }


def test_a_long_name_is_made_a_key_once_for_all_its_partitions() -> None:
    """Each partition had a key of its own: a request of 400 KB took three gigabytes."""
    kind = shape(DESCRIBE_PRODUCERS, 0)
    asked: Fields = {"topics": [{"name": "é" * 1000, "partition_indexes": list(range(1000))}]}
    page = AnswerPage(kind.fields, kind.beginning, 7, None)
    items = items_of(kind, kind.asked, asked, page)
    assert len(items) == 1000
    assert len({id(item.order[0]) for item in items}) == 1
