"""Events as bytes: one line of data each, the hash with the last one of a change, names with any character."""

from __future__ import annotations

import json

from aiohttp.test_utils import make_mocked_request

from broker_core.errors import Cause, ListingFailed
from broker_core.listing.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.servers.http.api.events import event_text
from broker_core.servers.http.api.events.event_text import (
    EVENTS,
    changed_text,
    error_text,
    first_text,
    snapshot_text,
)

NAMESPACE = NamespaceName("t", "n")


def listing(*locals_: str) -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"persistent://t/n/{each}" for each in locals_])


def parsed(text: bytes) -> list[dict[str, str]]:
    assert text.endswith(b"\n\n")
    return [
        dict(line.split(": ", 1) for line in block.split("\n"))
        for block in text.decode().removesuffix("\n\n").split("\n\n")
    ]


def test_a_change_has_its_hash_at_the_end(monkeypatch: object) -> None:
    many = [f"x{number:04}" for number in range(2500)]
    text = changed_text(listing(*many).all(), listing("a", "b").all(), "0a1b2c3d")
    events = parsed(text)
    assert [each["event"] for each in events] == ["added", "added", "added", "removed"]
    assert [each.get("id") for each in events] == [None, None, None, "0a1b2c3d"]
    names = [name for each in events[:3] for name in json.loads(each["data"])["items"]]
    assert sorted(names) == [f"persistent://t/n/{each}" for each in many]
    assert changed_text(listing().all(), listing("a").all(), "0a1b2c3d") == (
        b'event: removed\nid: 0a1b2c3d\ndata: {"items":["persistent://t/n/a"]}\n\n'
    )


def test_names_that_are_other_topics_go_and_come() -> None:
    (chunk,) = EVENTS.recreated(listing("a", "b").all(), "0a1b2c3d-7")
    events = parsed(chunk.partition(b"\r\n")[2].removesuffix(b"\r\n"))
    assert [(each["event"], each.get("id")) for each in events] == [
        ("removed", None),
        ("added", "0a1b2c3d-7"),
    ]
    assert events[0]["data"] == events[1]["data"]


def test_a_snapshot_is_in_parts() -> None:
    names = listing(*(f"x{number:04}" for number in range(2 * event_text.ROWS + 1)))
    found: list[str] = []
    for part in range(3):
        (event,) = parsed(snapshot_text(names.all(), part * event_text.ROWS, "0a1b2c3d", {"filtered": False}))
        data = json.loads(event["data"])
        assert (event["event"], data["part"], data["last"]) == ("snapshot", part, part == 2)
        assert event.get("id") == ("0a1b2c3d" if part == 2 else None)
        assert ("filtered" in data, "topics_hash" in data) == (part == 2, part == 2)
        found += data["items"]
    assert found == names.names.to_pylist()
    (nothing,) = parsed(snapshot_text(listing().all(), 0, "00000000", {}))
    assert json.loads(nothing["data"]) == {"items": [], "part": 0, "last": True, "topics_hash": "00000000"}


def test_line_breaks_of_names_are_escaped() -> None:
    odd = ["a\nb", "c\r\nd", 'e"f\\g', "\u2028", "ü"]
    (event,) = parsed(changed_text(listing(*odd).all(), listing().all(), "0a1b2c3d"))
    assert sorted(json.loads(event["data"])["items"]) == sorted(f"persistent://t/n/{each}" for each in odd)


def test_an_error_is_a_problem() -> None:
    request = make_mocked_request("GET", "/v1/x")
    (event,) = parsed(error_text(ListingFailed("no\nmore", cause=Cause.DENIED), request))
    assert event["event"] == "error"
    problem = json.loads(event["data"])
    assert (problem["status"], problem["cause"], problem["detail"]) == (403, "DENIED", "no\nmore")
    assert first_text(1500) == b"retry: 1500\n\n"
