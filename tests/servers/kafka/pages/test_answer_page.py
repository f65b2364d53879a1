"""A pass of pages over each of thirteen requests, while topics, groups, ACLs and configs come and go."""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from broker_core.client.kafka.pages import goes_on
from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_shapes import LOG_DIR
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_FETCH,
    ZERO_ID,
    Api,
    Fields,
)
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_page_server import PageServer, page_server
from tests.support.kafka_page_units import Order, cursor_fields, in_order, place_of, units_of

#: Units of a window with small pages, and of the largest page; KAFKA_WINDOW=2000 has them as they are asked for.
WINDOW: Final = int(os.environ.get("KAFKA_WINDOW", "16"))
SIZE: Final = WINDOW + WINDOW // 8
CAP: Final = min(WINDOW, 2000)
NAMES: Final = [f"t{number:04d}" for number in range(SIZE)]
#: Each with the version that is asked; named topics are asked for besides all of them.
ASKED: Final[dict[str, tuple[Api, int, Callable[[], Fields]]]] = {
    "topics": (METADATA, 13, lambda: {"topics": None}),
    "topics 9": (METADATA, 9, lambda: {"topics": None}),
    "named topics": (METADATA, 13, lambda: {"topics": [{"name": name} for name in NAMES]}),
    "offsets": (
        LIST_OFFSETS,
        11,
        lambda: {"topics": _indexes("partitions", lambda each: {"partition_index": each, "timestamp": -1})},
    ),
    "reassignments": (LIST_PARTITION_REASSIGNMENTS, 0, lambda: {"topics": None}),
    "logs": (DESCRIBE_LOG_DIRS, 5, lambda: {"topics": None}),
    "named logs": (
        DESCRIBE_LOG_DIRS,
        2,
        lambda: {"topics": _indexes("partitions", lambda each: each, name="topic")},
    ),
    "committed": (
        OFFSET_FETCH,
        9,
        lambda: {
            "groups": [
                {"group_id": group, "topics": _indexes("partition_indexes", lambda each: each)[:half]}
                for group, half in (("g", None), ("h", SIZE // 8))
            ]
        },
    ),
    "producers": (
        DESCRIBE_PRODUCERS,
        0,
        lambda: {"topics": _indexes("partition_indexes", lambda each: each)},
    ),
    "transactions": (LIST_TRANSACTIONS, 2, dict),
    "named transactions": (DESCRIBE_TRANSACTIONS, 0, lambda: {"transactional_ids": [*NAMES]}),
    "groups": (LIST_GROUPS, 5, dict),
    "members": (DESCRIBE_GROUPS, 6, lambda: {"groups": [*NAMES]}),
    "consumers": (CONSUMER_GROUP_DESCRIBE, 1, lambda: {"group_ids": [*NAMES]}),
    "acls": (
        DESCRIBE_ACLS,
        3,
        lambda: dict.fromkeys(
            ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1
        ),
    ),
    "configs": (
        DESCRIBE_CONFIGS,
        4,
        lambda: {"resources": [{"resource_type": 2, "resource_name": name} for name in NAMES]},
    ),
}


def _indexes(array: str, one: Callable[[int], Any], *, name: str = "name") -> list[Fields]:
    return [{name: topic, array: [one(index) for index in range(3)]} for topic in NAMES]


class Changing:
    """A server whose topics, groups, transactions, producers and ACLs come and go."""

    def __init__(self, server: PageServer, seed: int) -> None:
        self.server = server
        self._random = random.Random(seed)
        for name in NAMES[:: self._random.choice([1, 2, 3])]:
            if name not in server.ids:
                server.create(name, self._random.randint(1, 4))
        for name in NAMES:
            self._fill(name)

    def _fill(self, name: str) -> None:
        rows, some = self.server.rows, self._random
        rows.groups[name] = [f"m{number}" for number in range(some.choice([0, 1, 1, 5]))]
        rows.transactions[name] = some.choice([1, 5, 2**62, some.randrange(2**40)])
        rows.producers[name, some.randrange(3)] = some.sample(range(99), some.choice([0, 1, 4]))
        rows.reassigned[name] = some.sample(range(5), 2)
        if name not in self.server.acls.resources:
            self.server.acls.resources.append(name)

    def change(self, near: str | None) -> None:
        """Some topic, or the one of a cursor, is made, deleted or made anew; of everything else too something comes or
        goes.
        """
        some, rows = self._random, self.server.rows
        name = near if near in self.server.ids and some.random() < 0.6 else some.choice(NAMES)
        assert name is not None
        if name in self.server.ids:
            self.server.delete(name)
        if some.random() < 0.7:
            self.server.create(name, some.randint(1, 4))
        if some.random() < 0.5:
            self._fill(some.choice(NAMES))
            return
        for gone in (rows.groups, rows.transactions, rows.reassigned):
            gone.pop(some.choice(NAMES), None)
        rows.producers.pop((name, some.randrange(3)), None)
        if len(self.server.acls.resources) > 1:
            self.server.acls.resources.remove(some.choice(self.server.acls.resources))


Known = tuple[Order, uuid.UUID]


class Pass:
    """One request, asked for page after page from a place on."""

    def __init__(self, server: PageServer, asked: str) -> None:
        self.server = server
        self.api, self.version, body = ASKED[asked]
        self.body = body()

    def units(self, answer: Fields) -> dict[Known, list[str]]:
        """The rows of an answer by key and by the id that the topic of the key has now."""
        found: dict[Known, list[str]] = {}
        topic_at = {"topic_name": 0, "group_id": 1}.get(cursor_fields(self.api)[0].name)
        has_topics = any(each.name == "topic_name" for each in cursor_fields(self.api))
        for key, row in in_order(units_of(self.api, self.body, answer, self.server.shown)):
            name = key[topic_at].decode("utf-16-be") if has_topics and topic_at is not None else ""
            topic_id = self.server.ids.get(name, ZERO_ID)
            found.setdefault((key, topic_id), []).append(str(row))
        return found

    def whole(self) -> dict[Known, list[str]]:
        """The answer without pages."""
        return self.units(self.server.ask(self.api, self.version, self.body))

    def begins_anew(self, cursor: Fields | None, page: dict[Known, list[str]]) -> bool:
        """Whether a page begins with the first partition of its topic, if that was made anew since its cursor."""
        told = ZERO_ID if cursor is None else cursor.get("topic_id", ZERO_ID)
        if cursor is None or told == ZERO_ID:
            return True
        there = self.server.ids.get(cursor["topic_name"], told)
        first = place_of(self.api, {**cursor, "partition_index": 0})
        names = [each.name for each in cursor_fields(self.api)]
        end = names.index("partition_index") + 2  # behind the name there is the id
        return there == told or any((key[:end], topic_id) == (first[:end], there) for key, topic_id in page)

    def page(self, limit: int, cursor: Fields | None) -> Fields:
        """One page."""
        asked = {**self.body, "response_pagination_limit": limit, "cursor": cursor}
        return self.server.ask(self.api, self.version, asked)

    def pages(self, limit: int, cursor: Fields | None, most: int) -> Iterator[Fields]:
        """Pages from a cursor on, until there are so many units, or none is left."""
        units = 0
        while units < most:
            answer = self.page(limit, cursor)
            following = answer["next_cursor"]
            yield answer
            if following is None:
                return
            assert cursor is None or goes_on(cursor, following)
            units += min(limit, CAP)
            cursor = following


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with page_server(tmp_path_factory.mktemp("passes"), ClusterRows(), CAP) as server:
        yield server


@pytest.mark.many
@pytest.mark.parametrize("limit", [1, 7, 2000, 10**9])
@pytest.mark.parametrize("asked", ASKED)
def test_a_pass_has_once_what_was_there_throughout(server: PageServer, asked: str, limit: int) -> None:
    changing = Changing(server, seed := random.SystemRandom().randrange(2**32))
    some = random.Random(seed)
    one = Pass(server, asked)
    for is_still in (True, False):
        most = WINDOW if limit < CAP else 10**6
        start = None
        if limit < CAP:  # the window begins at a random place of the answer
            start = one.page(some.randint(1, len(one.whole())), None)["next_cursor"]
        whole = one.whole()
        throughout = set(whole)
        joined: dict[Known, list[str]] = {}
        end: Order | None = None
        cursor = start
        for answer in one.pages(limit, start, most):
            page = one.units({**answer})
            assert page.keys().isdisjoint(joined), seed
            assert page.items() <= whole.items(), seed
            joined |= page
            assert one.begins_anew(cursor, page), seed
            cursor = answer["next_cursor"]
            end = None if cursor is None else place_of(one.api, cursor)
            if not is_still and some.random() < min(0.4, 40 * limit / WINDOW):
                changing.change((cursor or {}).get("topic_name"))
                whole = one.whole()
                throughout &= whole.keys()
        begin = () if start is None else place_of(one.api, start)
        throughout = {each for each in throughout if begin <= each[0] and (end is None or each[0] < end)}
        assert throughout <= joined.keys(), seed
        if is_still:
            assert joined.keys() == throughout, seed


def test_a_directory_is_named_in_cursors(server: PageServer) -> None:
    Changing(server, 1)
    body = {"topics": None, "response_pagination_limit": 1}
    cursor = server.ask(DESCRIBE_LOG_DIRS, 5, body)["next_cursor"]
    assert cursor["log_dir"] == LOG_DIR


class _Units:
    """Three units of one topic."""

    size = 3
    stops = True

    def take(self, count: int) -> None:
        assert count

    def place(self, count: int) -> UnitPlace:
        return UnitPlace(("a", count))


def test_a_page_that_begins_anew_has_no_end_and_all_its_room() -> None:
    """A node may refuse what is asked for then: nothing fills the page, and the refusal has no cursor."""
    page = AnswerPage(("topic_name", "partition_index"), ("", 0), 2, UnitPlace(("a", 1), uuid.UUID(int=8)))
    page.fill([_Units()])
    assert (page.next_cursor, page.left) == ({"topic_name": "a", "partition_index": 2}, 0)
    page.begin_anew(UnitPlace(("a", 0), uuid.UUID(int=9)))
    assert page.start == UnitPlace(("a", 0), uuid.UUID(int=9))
    assert (page.next_cursor, page.left) == (None, 2)
