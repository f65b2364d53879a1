"""Server-sent events as bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html).

The data of an event is one line of JSON, in which every line break is escaped. ``id`` is the hash of a client's topics
after the event, followed by versions of the catalogue, since a hash does not show recreated topics; of events that
belong together only the last one has it, so that a client which is cut off between them resumes before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from aiohttp import web

from broker_core.compact_json import ascii_json
from broker_core.listing import Selection, names_json_items
from broker_core.servers.http.api.problem_details import problem_of, problem_response
from broker_core.service import AnswerChange

__all__ = [
    "EVENTS",
    "HEARTBEAT",
    "ROWS",
    "EventRenderer",
    "changed_text",
    "chunk_of",
    "error_text",
    "event_text",
    "first_text",
    "snapshot_text",
    "watching_text",
]

#: Keeps proxies from taking a quiet stream for a dead one.
HEARTBEAT: Final = b":\n\n"
#: Names of one event.
ROWS: Final = 1000
#: Bytes of changed names above which streams get all topics anew.
_MOST: Final = 512 * 1024


class EventRenderer:
    """Changes as chunks of the body of a stream, which all streams are written."""

    def changed(self, change: AnswerChange) -> tuple[bytes, ...] | None:
        """The events of a change; ``None`` if all topics are sent anew."""
        if change.added.fields_size + change.removed.fields_size > _MOST:
            return None
        return (chunk_of(changed_text(change.added, change.removed, change.event_id)),)

    def recreated(self, names: Selection, event_id: str) -> tuple[bytes, ...]:
        """The events of recreated topics: each name is removed, and added."""
        gone = b"".join(event_text("removed", b'{"items":[%s]}' % _items(part)) for part in _parts(names))
        return (chunk_of(gone + changed_text(names, names.range(0, 0), event_id)),)


EVENTS: Final = EventRenderer()


def chunk_of(text: bytes) -> bytes:
    """A chunk of a body of unknown length."""
    return b"%x\r\n%s\r\n" % (len(text), text)


def event_text(name: str, data: bytes, topics_hash: str | None = None) -> bytes:
    """One event; ``data`` has no line break."""
    last_id = b"" if topics_hash is None else b"id: %s\n" % topics_hash.encode()
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), last_id, data)


def first_text(milliseconds: int) -> bytes:
    """The beginning of a stream: the time after which a client that was cut off should come back."""
    return b"retry: %d\n\n" % milliseconds


def watching_text(period: float | None) -> bytes:
    """The event that says whether changes are sent as they come, or looked for every so many seconds."""
    fields = {"watching": True} if period is None else {"watching": False, "period_s": period}
    return event_text("watching", ascii_json(fields).encode())


def changed_text(added: Selection, removed: Selection, topics_hash: str) -> bytes:
    """The events of one change; ``topics_hash`` is that of the answer after it."""
    parts = [("added", each) for each in _parts(added)] + [("removed", each) for each in _parts(removed)]
    last = len(parts) - 1
    return b"".join(
        event_text(name, b'{"items":[%s]}' % _items(part), topics_hash if number == last else None)
        for number, (name, part) in enumerate(parts)
    )


def snapshot_text(
    answer: Selection, low: int, topics_hash: str, more: dict[str, Any], event_id: str | None = None
) -> bytes:
    """The event with the names from row ``low`` on of a whole answer; ``more`` are members of the last one."""
    high = min(low + ROWS, len(answer))
    is_last = high == len(answer)
    fields: dict[str, Any] = {"part": low // ROWS, "last": is_last}
    if is_last:
        fields |= {"topics_hash": topics_hash, **more}
    data = b'{"items":[%s],%s' % (_items(answer.range(low, high)), ascii_json(fields)[1:].encode())
    return event_text("snapshot", data, (event_id or topics_hash) if is_last else None)


def error_text(error: Exception, request: web.Request) -> bytes:
    """The event ``error``: the problem that a response would have."""
    text = problem_response(problem_of(error, request)).text
    assert text is not None
    return event_text("error", text.strip().encode())


def _parts(selection: Selection) -> Iterator[Selection]:
    for low in range(0, len(selection), ROWS):
        yield selection.range(low, min(low + ROWS, len(selection)))


def _items(names: Selection) -> bytes:
    return b"".join(names_json_items(names))
