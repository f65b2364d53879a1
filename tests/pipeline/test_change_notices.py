"""Notices of changes to followers, and detection of races with them."""

from __future__ import annotations

from broker_core.names import NamespaceName
from broker_core.pipeline import change_notices
from broker_core.pipeline.change_notices import ChangeNotices

ONE, OTHER = NamespaceName("t", "one"), NamespaceName("t", "other")


def test_whoever_subscribes_is_told_until_it_ends_that() -> None:
    notices, seen = ChangeNotices(), list[tuple[str, NamespaceName | None]]()
    end = notices.subscribe(lambda namespace: seen.append(("a", namespace)))
    notices.subscribe(lambda namespace: seen.append(("b", namespace)))
    notices.announce(ONE)
    end()
    end()
    notices.announce(None)
    assert seen == [("a", ONE), ("b", ONE), ("b", None)]


def test_a_notice_between_two_marks_is_seen() -> None:
    notices = ChangeNotices()
    mark = notices.mark(ONE)
    notices.announce(OTHER)
    assert notices.unchanged(ONE, mark)
    notices.announce(ONE)
    assert not notices.unchanged(ONE, mark)
    mark = notices.mark(ONE)
    assert notices.unchanged(ONE, mark)
    notices.announce(None)
    assert not notices.unchanged(ONE, mark)


def test_the_names_that_plugins_give_take_bounded_memory() -> None:
    notices = ChangeNotices()
    mark = notices.mark(ONE)
    for number in range(change_notices._MANY + 10):
        notices.announce(NamespaceName("t", f"n{number}"))
    assert len(notices._of) <= change_notices._MANY
    assert not notices.unchanged(ONE, mark)  # nobody knows any more: rather too often than not
