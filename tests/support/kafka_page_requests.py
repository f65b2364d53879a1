"""Random requests for pages of each API that has them, and the page that is right, of the answer without pages."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.pages.page_shapes import LOG_DIR
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    OFFSET_FETCH,
    Api,
    Fields,
)
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_page_units import cursor_fields, in_order, place_of, units_of

__all__ = ["CAP", "PAGED", "ROWS", "TOPICS", "PageRequest", "check_page", "has_error", "page_requests"]

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
            by_id = [{"name": None, "topic_id": each} for each in draw(some_ids)]
            asked = draw(st.permutations([*by_id, *draw(st.just([]) | st.just(asked or []))]))
        return {"topics": asked, "include_topic_authorized_operations": draw(st.booleans())}
    if api is LIST_OFFSETS:
        one = st.fixed_dictionaries({"partition_index": number, "timestamp": st.sampled_from([-1, -2, 5])})
        return {"topics": draw(structs("name", partitions=st.lists(one, max_size=5)))}
    if api is LIST_PARTITION_REASSIGNMENTS:
        return {"topics": draw(st.none() | structs("name", partition_indexes=indexes))}
    if api is DESCRIBE_PRODUCERS:
        return {"topics": draw(structs("name", partition_indexes=indexes))}
    if api is DESCRIBE_LOG_DIRS:
        return {"topics": draw(st.none() | structs("topic", partitions=indexes))}
    if api is OFFSET_FETCH:
        topics: Any = st.none() | structs("name", partition_indexes=indexes)
        if version >= 10:
            one = st.sampled_from([*ids.values(), uuid.UUID(int=5)])
            rows_by_id = st.fixed_dictionaries({"topic_id": one, "partition_indexes": indexes})
            topics = st.none() | st.lists(rows_by_id, max_size=4)
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


class PageRequest(NamedTuple):
    """A request of an API, and the page of it that is asked for."""

    api: Api
    body: Fields
    limit: int | None
    cursor: Fields | None

    @property
    def paged(self) -> Fields:
        """The request for the page."""
        return {**self.body, "response_pagination_limit": self.limit, "cursor": self.cursor}


@st.composite
def page_requests(draw: st.DrawFn, api: Api, version: int, ids: dict[str, uuid.UUID]) -> PageRequest:
    """Random ones; ``ids`` are those of the topics that there are."""
    body, cursor = draw(bodies(api, version, ids)), draw(cursors(api))
    limits = (
        [-1, 0, 1, 2, 7, 10**9, 2**31 - 1] if cursor is None else [None, -1, 0, 1, 2, 7, 10**9, 2**31 - 1]
    )
    return PageRequest(api, body, draw(st.sampled_from(limits)), cursor)


def check_page(asked: PageRequest, whole: Fields, page: Fields, shown: Mapping[str, uuid.UUID]) -> None:
    """Check that a page is the right part of the answer without pages; ``shown`` are the ids of visible topics."""
    api, body, limit, cursor = asked
    names = asked_names(body)
    first = None if cursor is None else cursor[cursor_fields(api)[0].name]
    negative = cursor is not None and any(isinstance(each, int) and each < 0 for each in cursor.values())
    if (limit or 0) < 0 or negative or (names is not None and first and first not in names):
        assert page["next_cursor"] is None
        asks_nothing = not any(body.values()) and api not in (METADATA, DESCRIBE_LOG_DIRS)
        assert has_error(page, 42) or (asks_nothing and api.name.startswith(("Desc", "ListO", "Off", "Cons")))
        return
    begin = () if cursor is None else place_of(api, cursor)
    every = in_order(units_of(api, body, whole, shown))
    grouped = [(key, [row for _, row in rows]) for key, rows in groupby(every, key=lambda unit: unit[0])]
    left = [(key, rows) for key, rows in grouped if key >= begin]
    most = max(1, min(CAP if limit is None else limit, CAP))
    wanted = [row for _, rows in left[:most] for row in rows]
    following = page["next_cursor"]
    found = [row for _, row in in_order(units_of(api, body, page, shown))]
    assert found == wanted, (found, wanted, following)
    assert (None if following is None else place_of(api, following)) == (
        left[most][0] if len(left) > most else None
    )


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
