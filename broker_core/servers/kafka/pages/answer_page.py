"""A page of an answer: its start, its limit, and the start of the next one."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from broker_core.servers.kafka.pages.kept_answers import WholeAnswer
from broker_core.wire.kafka import ZERO_ID, Fields

__all__ = ["AnswerPage", "Key", "UnitPlace", "UnitRun", "without_page"]

#: The values of the fields of a cursor, in the cursor's order.
Key: TypeAlias = tuple[Any, ...]

_ID: Final = "topic_id"


def without_page(body: Fields) -> Fields:
    """A request for all in place of a page."""
    return {**body, **{name: None for name in ("response_pagination_limit", "cursor") if name in body}}


class UnitPlace(NamedTuple):
    """The place of a unit; ``topic_id`` is the id of the topic that it names, zero if it names none or the id is
    unknown.
    """

    key: Key
    topic_id: uuid.UUID = ZERO_ID


class UnitRun(Protocol):
    """Units of an answer that are neighbours: ``size`` of them.

    Rows of one unit are one run and others of size 0. A run of size 0 that ``stops`` begins the next page if this one
    is full, as every larger one does.
    """

    size: int
    stops: bool

    def take(self, count: int) -> None:
        """Put the first ``count`` units on the page; a run of size 0 as a whole."""

    def place(self, count: int) -> UnitPlace:
        """The place of the unit after the first ``count``."""


class AnswerPage:
    """A wanted page. ``start`` is the least place on it, ``None`` the beginning, whose key is ``beginning``.
    ``as_kafka``: by Kafka's own rules (KIP-966) a topic of fewer partitions than the page begins with is on it, without
    any, and cursors have no ids of topics.

    ``topic_ids`` are the ids of topics that were looked up for it, and ``names`` their names by id.
    """

    __slots__ = (
        "_fields",
        "as_kafka",
        "beginning",
        "following",
        "is_filled",
        "left",
        "limit",
        "names",
        "start",
        "topic_ids",
        "whole",
    )

    def __init__(
        self,
        fields: tuple[str, ...],
        beginning: Key,
        limit: int,
        start: UnitPlace | None = None,
        *,
        as_kafka: bool = False,
    ) -> None:
        self._fields = fields
        self.beginning = beginning
        self.as_kafka = as_kafka
        self.limit = limit
        #: The units that were still missing when it was last filled.
        self.left = limit
        self.start = start
        #: The start of the next page; ``None`` after the last one.
        self.following: UnitPlace | None = None
        #: Whether all topics of a namespace were asked for, and the page's are there.
        self.is_filled = False
        self.topic_ids: dict[str, uuid.UUID] = {}
        self.names: dict[uuid.UUID, str] = {}
        #: The answer that a cluster gave to the whole pass.
        self.whole: WholeAnswer | None = None

    def whole_of(self, fields: Fields) -> WholeAnswer | None:
        """The kept answer that has these fields; ``None`` if they are another answer's."""
        return None if self.whole is None or self.whole.fields is not fields else self.whole

    def note(self, name: str | None, topic_id: uuid.UUID) -> None:
        """Note a topic that was looked up for this page."""
        if name is not None and topic_id != ZERO_ID:
            self.topic_ids[name] = topic_id
            self.names[topic_id] = name

    def fill(self, runs: Iterable[UnitRun]) -> None:
        """Take runs, which are in order and begin at the start, until the page is full."""
        self.following = None
        left = self.limit
        for run in runs:
            if not left and run.stops:
                self.following = run.place(0)
                break
            taken = min(run.size, left)
            run.take(taken)
            left -= taken
            if taken < run.size:
                self.following = run.place(taken)
                break
        self.left = left

    def begin_anew(self, start: UnitPlace) -> None:
        """Empty the page, and begin it at another place."""
        self.start, self.following, self.left = start, None, self.limit

    def for_node(self, names: Collection[str]) -> Fields:
        """The fields that ask a node, which has pages by Kafka's own rules, for this page of the named topics."""
        start = self.start
        cursor = None
        if start is not None and start.key[0] in names:
            cursor = dict(zip(self._fields, start.key, strict=True))
        return {"response_partition_limit": self.limit, "cursor": cursor}

    @property
    def next_cursor(self) -> Fields | None:
        """The cursor of the next page."""
        if self.following is None:
            return None
        cursor = dict(zip(self._fields, self.following.key, strict=True))
        if self.following.topic_id != ZERO_ID and not self.as_kafka:
            cursor[_ID] = self.following.topic_id
        return cursor
