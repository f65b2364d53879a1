"""The counts of what became of stored files."""

from __future__ import annotations

from broker_core.catalog.warm_start.refusals import EVENTS, FileCounts


def test_every_event_is_there_from_the_start_and_counted() -> None:
    counts = FileCounts()
    assert counts.read() == dict.fromkeys(EVENTS, 0)
    counts.add("read")
    counts.add("removed", 3)
    assert (counts.read()["read"], counts.read()["removed"]) == (1, 3)
