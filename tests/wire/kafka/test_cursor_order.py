from __future__ import annotations

import uuid

from broker_core.wire.kafka import order_of, ordered


def test_texts_are_compared_as_java_compares_them() -> None:
    names = ["\uffee", "\U00010000", "a"]
    found = sorted(names, key=lambda name: order_of({"group_id": name}, ["group_id"]))
    assert found == ["a", "\U00010000", "\uffee"]


def test_newer_producers_are_before_older_ones_whatever_their_transactions_are() -> None:
    fields = ordered(("transactional_id", "producer_id"))
    places = [("b", 1), ("a", 1), ("c", 2**63 - 1), ("d", 0)]
    values = [{"transactional_id": name, "producer_id": number} for name, number in places]
    found = sorted(values, key=lambda each: order_of(each, fields))
    assert [each["transactional_id"] for each in found] == ["c", "a", "b", "d"]
    assert ordered(("topic_name", "partition_index", "producer_id"))[0] == "topic_name"


def test_topics_without_a_name_come_first_by_their_ids() -> None:
    def place(name: str, number: int) -> object:
        return order_of({"topic_name": name}, ["topic_name"], uuid.UUID(int=number))

    assert place("", 1) < place("", 2**127) < place("a", 9) == place("a", 3)  # type: ignore[operator]
