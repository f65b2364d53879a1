"""Pages of each request, at random cursors and limits, beside the answer without pages as a model."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.call import KafkaCall
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.servers.kafka.page_shapes import LOG_DIR
from broker_core.servers.kafka.paged_row import with_pages
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
from tests.support.kafka_calls import call_of
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_page_server import PageServer, page_server
from tests.support.kafka_page_units import cursor_fields, in_order, place_of, units_of

#: Random pages of each of 36 versions; 2,800 are some 100,000 in all.
EXAMPLES: Final = int(os.environ.get("KAFKA_PAGES", "15"))
#: The units of a page at most.
CAP: Final = 5
TOPICS: Final = {"a": 3, "a.b": 1, "b": 7, "c": 1, "x1": 2, "x2": 1, "z": 4}
#: Names of which UTF-16 has another order than code points, and of which none is a topic.
NAMES: Final = [*TOPICS, "", "A", "none", "a b", "\uffee", "\U00010000"]
#: What a cluster would have besides: groups, transactions, producers and reassignments.
ROWS: Final = ClusterRows(
    {
        "a": ["m", "\uffee", "\U00010000"],
        "b": [],
        "A": ["one"],
        "\U00010000": [str(each) for each in range(9)],
    },
    {"a": 5, "b": 2**62, "c": 5, "none": 7, "\uffee": 1, "\U00010000": 1},
    {("a", 0): [3, 2**62, 5], ("a", 1): [], ("b", 2): [*range(12)], ("z", 2**31 - 1): [1]},
    {"a": [0, 1], "b": [2, 5, 1], "z": [2**31 - 1]},
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with page_server(tmp_path_factory.mktemp("pages"), ROWS, CAP) as server:
        for name, count in TOPICS.items():
            server.create(name, count)
        yield server


name = st.sampled_from(NAMES)
number = st.integers(-1, 8) | st.just(2**31 - 1)
some_names = st.lists(name, max_size=6)
indexes = st.lists(number, max_size=5)


def structs(key: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Fields]]:
    return st.lists(st.fixed_dictionaries({key: name, **more}), max_size=5)


@st.composite
def bodies(draw: st.DrawFn, api: Api, version: int, ids: dict[str, uuid.UUID]) -> Fields:
    """A request, and what its cursors may name."""
    some_ids = st.lists(st.sampled_from([*ids.values(), uuid.UUID(int=5), uuid.UUID(int=2**127)]), max_size=6)
    if api is METADATA:
        asked: Any = draw(st.none() | some_names.map(lambda them: [{"name": each} for each in them]))
        if version >= 12 and draw(st.booleans()):
            asked = [{"name": None, "topic_id": each} for each in draw(some_ids)]
        return {"topics": asked, "include_topic_authorized_operations": draw(st.booleans())}
    if api is LIST_OFFSETS:
        one = st.fixed_dictionaries({"partition_index": number, "timestamp": st.sampled_from([-1, -2, 5])})
        return {"topics": draw(structs("name", partitions=st.lists(one, max_size=5)))}
    if api is LIST_PARTITION_REASSIGNMENTS:
        return {"topics": draw(st.none() | structs("name", partition_indexes=indexes))}
    if api is DESCRIBE_PRODUCERS:
        return {"topics": draw(structs("name", partition_indexes=indexes))}
    if api is DESCRIBE_LOG_DIRS:
        of_topics = st.dictionaries(name, indexes, max_size=5)
        rows = draw(
            st.none() | of_topics.map(lambda them: [{"topic": a, "partitions": b} for a, b in them.items()])
        )
        return {"topics": rows}
    if api is OFFSET_FETCH:
        topics: Any = st.none() | structs("name", partition_indexes=indexes)
        if version >= 10:
            one = st.sampled_from([*ids.values(), uuid.UUID(int=5)])
            rows_by_id = st.fixed_dictionaries({"topic_id": one, "partition_indexes": indexes})
            topics = st.none() | st.lists(rows_by_id, max_size=4, unique_by=lambda row: str(row["topic_id"]))
        if version < 8:
            return {"group_id": draw(name), "topics": draw(topics)}
        return {"groups": draw(structs("group_id", topics=topics))}
    if api is DESCRIBE_TRANSACTIONS:
        return {"transactional_ids": draw(some_names)}
    if api is DESCRIBE_GROUPS:
        return {"groups": draw(some_names)}
    if api is CONSUMER_GROUP_DESCRIBE:
        return {"group_ids": draw(some_names)}
    if api is DESCRIBE_CONFIGS:
        kinds = st.sampled_from([2, 4, 32])
        keys = st.none() | st.just(["retention.ms"])
        return {"resources": draw(structs("resource_name", resource_type=kinds, configuration_keys=keys))}
    if api is DESCRIBE_ACLS:
        return {
            **dict.fromkeys(
                ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1
            ),
            "resource_name_filter": draw(st.none() | name),
        }
    return {}


@st.composite
def cursors(draw: st.DrawFn, api: Api) -> Fields | None:
    found: Fields = {}
    for each in cursor_fields(api):
        if each.name == "log_dir":
            found[each.name] = draw(st.sampled_from(["", LOG_DIR, "/z"]))
        elif each.name == "producer_id":
            found[each.name] = draw(st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1]))
        elif each.name == "resource_type":
            found[each.name] = draw(st.sampled_from([-1, 0, 2, 3, 32, 127]))
        else:
            found[each.name] = draw(number if each.name == "partition_index" else name)
    return draw(st.none() | st.just(found))


def asked_names(body: Fields) -> set[str] | None:
    """What a cursor may begin with; ``None``: anything."""
    if "group_id" in body:
        return {body["group_id"]}
    keys = ("name", "topic", "group_id", "resource_name")
    for rows in body.values():
        if isinstance(rows, list) and rows:
            firsts = [
                next(row[key] for key in keys if key in row) if isinstance(row, dict) else row for row in rows
            ]
            return None if None in firsts else set(firsts)
    return None


def has_error(answer: Any, code: int) -> bool:
    if isinstance(answer, dict):
        return answer.get("error_code") == code or any(has_error(each, code) for each in answer.values())
    return isinstance(answer, list) and any(has_error(each, code) for each in answer)


PAGED: Final = [
    (api, version)
    for api in (HANDLERS[key].api for key in sorted(HANDLERS))
    if any(each.name == "response_pagination_limit" for each in api.request.fields)
    for version in range(api.versions.first, api.versions.last + 1)
    if version >= api.flexible
]


_NAMED: Final = [{"name": "a"}]
_INDEXED: Final = [{"name": "a", "partition_indexes": [0]}]
#: Of each request the first version of a place at which 42 stands, what is asked, and the arrays above it.
STANDS: Final[list[tuple[Api, int, Fields, tuple[str, ...]]]] = [
    (METADATA, 9, {"topics": _NAMED}, ("topics",)),
    (METADATA, 13, {"topics": _NAMED}, ()),
    (
        LIST_OFFSETS,
        6,
        {"topics": [{"name": "a", "partitions": [{"partition_index": 0}]}]},
        ("topics", "partitions"),
    ),
    (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": _INDEXED}, ()),
    (DESCRIBE_LOG_DIRS, 2, {"topics": None}, ("results",)),
    (DESCRIBE_LOG_DIRS, 3, {"topics": None}, ()),
    (OFFSET_FETCH, 6, {"group_id": "g", "topics": _INDEXED}, ()),
    (OFFSET_FETCH, 8, {"groups": [{"group_id": "g", "topics": None}]}, ("groups",)),
    (DESCRIBE_PRODUCERS, 0, {"topics": _INDEXED}, ("topics", "partitions")),
    (LIST_TRANSACTIONS, 0, {}, ()),
    (DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": ["a"]}, ("transaction_states",)),
    (LIST_GROUPS, 3, {}, ()),
    (DESCRIBE_GROUPS, 5, {"groups": ["a"]}, ("groups",)),
    (CONSUMER_GROUP_DESCRIBE, 0, {"group_ids": ["a"]}, ("groups",)),
    (
        DESCRIBE_ACLS,
        2,
        dict.fromkeys(("resource_type_filter", "pattern_type_filter", "operation", "permission_type"), 1),
        (),
    ),
    (DESCRIBE_CONFIGS, 4, {"resources": [{"resource_type": 2, "resource_name": "a"}]}, ("results",)),
]


def errors_in(answer: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """The errors of an answer, each with the arrays that it is in."""
    if answer.get("error_code"):
        yield above, answer["error_code"]
    for name, rows in answer.items():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield from errors_in(row, (*above, name))


@pytest.mark.parametrize(("api", "version"), PAGED, ids=lambda each: getattr(each, "name", str(each)))
def test_42_stands_where_the_table_of_the_kip_says(api: Api, version: int, server: PageServer) -> None:
    of_api = [row for row in STANDS if row[0] is api and row[1] <= version]
    _, _, body, above = of_api[-1]
    numbers = {"partition_index": -1, "producer_id": -1, "resource_type": -1}
    negative = {each.name: numbers.get(each.name, "a") for each in cursor_fields(api)}
    pages: list[Fields] = [{"response_pagination_limit": -1}, {"cursor": {}}]
    if not set(numbers).isdisjoint(negative):
        pages.append({"cursor": negative | ({"group_id": "g"} if api is OFFSET_FETCH else {})})
    for page in pages:
        answer = server.ask(api, version, body | page, unreadable=page.get("cursor") == {})
        assert list(errors_in(answer)) == [(above, 42)]
        assert answer["next_cursor"] is None


def test_thirteen_requests_have_pages() -> None:
    assert len({api.name for api, _ in PAGED}) == 13


@pytest.mark.parametrize(("api", "version"), PAGED, ids=lambda each: getattr(each, "name", str(each)))
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_page_is_the_part_of_the_whole(
    api: Api, version: int, server: PageServer, data: st.DataObject
) -> None:
    body = data.draw(bodies(api, version, server.ids))
    limit = data.draw(st.sampled_from([None, -1, 0, 1, 2, 7, 10**9, 2**31 - 1]))
    cursor = data.draw(cursors(api))
    if limit is None and cursor is None:
        return
    whole = server.ask(api, version, body)
    page = server.ask(api, version, {**body, "response_pagination_limit": limit, "cursor": cursor})
    names = asked_names(body)
    first = None if cursor is None else cursor[cursor_fields(api)[0].name]
    negative = cursor is not None and any(isinstance(each, int) and each < 0 for each in cursor.values())
    if (limit or 0) < 0 or negative or (names is not None and first and first not in names):
        assert page["next_cursor"] is None
        asks_nothing = not any(body.values()) and api not in (METADATA, DESCRIBE_LOG_DIRS)
        assert has_error(page, 42) or (asks_nothing and api.name.startswith(("Desc", "ListO", "Off", "Cons")))
        return
    begin = () if cursor is None else place_of(api, cursor)
    every = in_order(units_of(api, body, whole, server.shown))
    grouped = [(key, [row for _, row in rows]) for key, rows in groupby(every, key=lambda unit: unit[0])]
    left = [(key, rows) for key, rows in grouped if key >= begin]
    most = max(1, min(CAP if limit is None else limit, CAP))
    wanted = [row for _, rows in left[:most] for row in rows]
    following = page["next_cursor"]
    assert [row for _, row in in_order(units_of(api, body, page, server.shown))] == wanted
    assert (None if following is None else place_of(api, following)) == (
        left[most][0] if len(left) > most else None
    )


def test_a_topic_made_anew_between_two_pages_begins_at_its_first_partition(server: PageServer) -> None:
    for body in ({"topics": None}, {"topics": [{"name": "again"}, {"name": "b"}]}):
        server.create("again", 4)
        first = server.ask(METADATA, 13, {**body, "response_pagination_limit": 2, "cursor": at("again", 0)})
        assert parts(first) == [("again", [0, 1])]
        assert first["next_cursor"]["topic_id"] == first["topics"][0]["topic_id"] != ZERO_ID
        server.delete("again")
        server.create("again", 3)
        asked = {**body, "response_pagination_limit": 2}
        second = server.ask(METADATA, 13, {**asked, "cursor": first["next_cursor"]})
        assert parts(second) == [("again", [0, 1])]
        assert parts(server.ask(METADATA, 13, {**asked, "cursor": second["next_cursor"]}))[0] == (
            "again",
            [2],
        )
        assert parts(server.ask(METADATA, 13, {**asked, "cursor": at("again", 2)}))[0] == ("again", [2])
        server.delete("again")


def test_a_row_with_an_error_and_no_name_is_before_a_cursor_within_it(server: PageServer) -> None:
    for version in (9, 12, 13):
        asked = {"topics": [{"name": ""}], "cursor": at("", 5)}
        assert server.ask(METADATA, version, asked)["topics"] == []


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("limit", [1, 2, CAP])
def test_the_error_of_a_group_comes_as_often_as_it_was_asked_for(
    version: int, limit: int, server: PageServer
) -> None:
    """However many partitions are asked for, and whichever of the two rows names the first of them."""
    topics = [{"name": name, "partition_indexes": [*range(2 * CAP)]} for name in ("b", "a", "z")]
    for first, second in ((topics, topics), (topics[:1], topics[1:]), (topics[1:], topics[:1])):
        groups = [{"group_id": "x1", "topics": each} for each in (first, second)]
        for others, rest in ([], []), ([{"group_id": "x2", "topics": topics}], ["x2"]):
            found: list[str] = []
            cursor: Fields | None = None
            while not found or cursor is not None:
                asked = {
                    "groups": [*groups, *others],
                    "response_pagination_limit": limit,
                    "cursor": cursor,
                }
                page = server.ask(OFFSET_FETCH, version, asked)
                assert all(row["error_code"] and not row["topics"] for row in page["groups"])
                found += [row["group_id"] for row in page["groups"]]
                cursor = page["next_cursor"]
            assert found == ["x1", "x1", *rest]


def test_unknown_ids_come_first_one_by_one_and_cursors_say_which(server: PageServer) -> None:
    unknown = [uuid.UUID(int=2**127), uuid.UUID(int=5), uuid.UUID(int=9)]
    asked = [{"name": None, "topic_id": each} for each in (unknown[0], server.ids["a"], *unknown[1:])]
    found: list[tuple[uuid.UUID, int, int]] = []
    cursors: list[Any] = []
    cursor = None
    while not found or cursor is not None:
        page = server.ask(METADATA, 13, {"topics": asked, "response_pagination_limit": 1, "cursor": cursor})
        found += [(row["topic_id"], row["error_code"], len(row["partitions"])) for row in page["topics"]]
        cursor = page["next_cursor"]
        cursors.append(cursor and tuple(cursor.values()))
    of_a = server.ids["a"]
    assert found == [*((each, 100, 0) for each in sorted(unknown)), *[(of_a, 0, 1)] * TOPICS["a"]]
    named = [(each, "", 0) for each in sorted(unknown)[1:]]
    assert [sorted(map(str, each or ())) for each in cursors] == [
        sorted(map(str, each)) for each in [*named, *((of_a, "a", index) for index in range(3)), ()]
    ]


def at(topic: str, partition: int) -> Fields:
    return {"topic_name": topic, "partition_index": partition}


def parts(answer: Fields) -> list[tuple[str, list[int]]]:
    return [(row["name"], [one["partition_index"] for one in row["partitions"]]) for row in answer["topics"]]


def test_no_handler_knows_of_pages() -> None:
    folder = Path("broker_core/servers/kafka")
    for module in [*folder.glob("apis/*.py"), *folder.glob("gateway/*.py")]:
        words = module.read_text(encoding="utf-8").lower()
        assert "cursor" not in words, module
        assert "limit" not in words, module


async def test_groups_whose_topics_are_all_asked_for_are_cut_within_a_group() -> None:
    rows = [{"partition_index": index, "committed_offset": index} for index in range(3)]

    async def answer(call: KafkaCall) -> Fields:
        return {
            "groups": [
                {"group_id": row["group_id"], "topics": [{"name": "t", "partitions": rows}]}
                for row in call.body["groups"]
            ]
        }

    row = with_pages(HandlerRow(OFFSET_FETCH, later=answer))
    assert row.later is not None
    found, cursor = [], None
    for _ in range(10):
        body: Fields = {"groups": [{"group_id": each, "topics": None} for each in ("a", "b")]}
        body |= {"response_pagination_limit": 2, "cursor": cursor}
        page = await row.later(call_of(OFFSET_FETCH, 9, body))
        found += [
            (group["group_id"], part["partition_index"])
            for group in page["groups"]
            for topic in group["topics"]
            for part in topic["partitions"]
        ]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == [(group, index) for group in ("a", "b") for index in range(3)]
