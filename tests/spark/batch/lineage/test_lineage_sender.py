"""Sending events: in order, without waiting for the receiver, and with one warning."""

from __future__ import annotations

import threading

from broker_core_spark.batch.lineage.lineage_sender import LineageSender


def test_events_are_sent_in_order() -> None:
    sent: list[str] = []
    said: list[str] = []
    sender = LineageSender(sent.append, said.append)
    sender.send("START")
    sender.send("COMPLETE")
    sender.close()
    assert sent == ["START", "COMPLETE"]
    assert said == []


def test_a_receiver_that_fails_is_told_once_and_without_its_message() -> None:
    sent: list[str] = []
    said: list[str] = []

    class Refused(Exception):
        class response:  # noqa: N801 - the name that transports have
            status_code = 503

    def emit(event: str) -> None:
        sent.append(event)
        raise (ConnectionError if event == "START" else Refused)("https://host?key=secret")

    for events, reason in ((["START", "COMPLETE"], "ConnectionError"), (["FAIL"], "status 503")):
        sender = LineageSender(emit, said.append)
        for event in events:
            sender.send(event)
        sender.close()
        assert said.pop() == f"lineage: the receiver did not take all events: {reason}"
    assert sent == ["START", "COMPLETE", "FAIL"]
    assert said == []


def test_a_receiver_that_hangs_costs_the_patience_alone() -> None:
    said: list[str] = []
    never = threading.Event()
    sender = LineageSender(lambda _: never.wait(60), said.append, patience=0.01)
    sender.send("START")
    sender.close()
    assert said == ["lineage: the receiver did not take the events within 0.01 seconds"]
    never.set()
