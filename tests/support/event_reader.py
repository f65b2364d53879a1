"""Reading server-sent events in tests, as a client of them does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import aiohttp

__all__ = ["EventReader", "StreamEvent"]


@dataclass(frozen=True)
class StreamEvent:
    """One event; ``id`` is ``None`` if it has none."""

    name: str
    data: Any
    id: str | None

    @property
    def items(self) -> list[str]:
        """The names of the event."""
        names: list[str] = self.data["items"]
        return names


class EventReader:
    """The events of a response, and the topics that a client has by them. ``id`` is what it would resume with."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.topics: set[str] = set()
        self.id: str | None = None
        self.retry: int | None = None
        self.comments = 0
        #: What it was told of how changes are seen.
        self.watching: list[dict[str, Any]] = []

    async def next(self) -> StreamEvent:
        """The next event; raises :exc:`EOFError` at the end of the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(60):
            while True:
                line = (await self.response.content.readline()).decode()
                if not line:
                    raise EOFError
                line = line.removesuffix("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    assert name not in fields, line
                    fields[name] = value
                elif fields.get("event") == "watching":
                    self.watching.append(json.loads(fields["data"]))
                    fields = {}
                elif "event" in fields:
                    return self._taken(fields)
                elif "retry" in fields:
                    self.retry = int(fields["retry"])
                    fields = {}

    def _taken(self, fields: dict[str, str]) -> StreamEvent:
        event = StreamEvent(fields["event"], json.loads(fields["data"]), fields.get("id"))
        self.id = event.id or self.id
        if event.name == "snapshot":
            if not event.data["part"]:
                self.topics.clear()
            self.topics.update(event.items)
        elif event.name == "added":
            assert not self.topics & set(event.items)
            self.topics.update(event.items)
        elif event.name == "removed":
            assert self.topics >= set(event.items)
            self.topics.difference_update(event.items)
        return event

    async def snapshot(self) -> list[StreamEvent]:
        """All parts of a snapshot."""
        parts = [await self.next()]
        while not parts[-1].data["last"]:
            parts.append(await self.next())
        assert {part.name for part in parts} == {"snapshot"}
        return parts

    async def until(self, topics: set[str]) -> None:
        """Read events until the client has these topics."""
        while self.topics != topics:
            await self.next()
