"""Pages of each request, at random cursors and limits, beside the answer without pages as a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.paged_requests import with_pages
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
    Api,
    Fields,
    Reader,
    Writer,
)
from tests.support.examples import examples
from tests.support.kafka_calls import call_of
from tests.support.kafka_page_requests import CAP, PAGED, ROWS, TOPICS, check_page, page_requests
from tests.support.kafka_page_server import PageServer, page_server
from tests.support.kafka_page_units import cursor_fields

#: Random pages of each of 36 versions; 2,800 are some 100,000 in all.
EXAMPLES: Final = int(os.environ.get("KAFKA_PAGES", "15"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with page_server(tmp_path_factory.mktemp("pages"), ROWS, CAP) as server:
        for name, count in TOPICS.items():
            server.create(name, count)
        yield server


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


#: The requests of which 42 has a message, each with the first version.
WITH_MESSAGE: Final = {
    LIST_PARTITION_REASSIGNMENTS: 0,
    DESCRIBE_PRODUCERS: 0,
    DESCRIBE_GROUPS: 6,
    CONSUMER_GROUP_DESCRIBE: 0,
    DESCRIBE_ACLS: 2,
    DESCRIBE_CONFIGS: 4,
}


def errors_in(answer: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Fields]]:
    """What has an error in an answer, each with the arrays that it is in."""
    if answer.get("error_code"):
        yield above, answer
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
        ((place, refused),) = errors_in(answer)
        assert (place, refused["error_code"]) == (above, 42)
        assert answer["next_cursor"] is None
        if api in WITH_MESSAGE and version >= WITH_MESSAGE[api]:
            assert refused["error_message"].startswith("The page that is asked for cannot be: its ")
        else:
            assert refused.get("error_message") is None  # or an older version has no such field


@pytest.mark.parametrize("size", [0, 2, 5])
def test_a_limit_of_another_size_is_refused(size: int) -> None:
    writer = Writer()
    LIST_GROUPS.write_request(writer, {}, 5)
    tag = b"\x01\x90\x4e" + bytes([size]) + b"\0\0\0\1\0"[:size]
    read = LIST_GROUPS.read_request(Reader(writer.joined()[:-1] + tag), 5)
    assert read["response_pagination_limit"] == -1  # which is answered with 42


def test_thirteen_requests_have_pages() -> None:
    assert len({api.name for api, _ in PAGED}) == 13


@pytest.mark.many
@pytest.mark.parametrize(("api", "version"), PAGED, ids=lambda each: getattr(each, "name", str(each)))
@settings(max_examples=examples(EXAMPLES), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_page_is_the_part_of_the_whole(
    api: Api, version: int, server: PageServer, data: st.DataObject
) -> None:
    asked = data.draw(page_requests(api, version, server.ids))
    check_page(
        asked, server.ask(api, version, asked.body), server.ask(api, version, asked.paged), server.shown
    )


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


def at(topic: str, partition: int) -> Fields:
    return {"topic_name": topic, "partition_index": partition}


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

    row = with_pages(HandlerRow(OFFSET_FETCH, answer))
    found, cursor = [], None
    for _ in range(10):
        body: Fields = {"groups": [{"group_id": each, "topics": None} for each in ("a", "b")]}
        body |= {"response_pagination_limit": 2, "cursor": cursor}
        page = await row.answered(call_of(OFFSET_FETCH, 9, body))
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
