"""Pages, details and counts over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import DescribeRequest, Details, ListingRequest, TopicListingResult, hookimpl
from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing_hash import topics_hash
from broker_core.listing.pages.page import Position
from broker_core.names import TopicName
from broker_core.names.topic_id import topic_id_text
from broker_core.names.topic_name import MAX_NAME_BYTES
from broker_core.servers.http.api.topics.cursor import cursor_of
from tests.support.api_serving import NAMESPACE, ApiServed, Said, api_served
from tests.support.plugins import PluginOf

LISTING = f"{NAMESPACE}/topics"
BILLS = "persistent://public/default/bills"
ORDERS = "persistent://public/default/orders"
NAMES = [BILLS, f"{ORDERS}-partition-0", f"{ORDERS}-partition-1"]


async def passed(served: ApiServed, **query: Any) -> list[Said]:
    """All pages, by ``next``."""
    pages = [await served.ask(LISTING, params=query)]
    while (cursor := pages[-1].json["next"]) is not None:
        pages.append(await served.ask(LISTING, params=query | {"cursor": cursor}))
    return pages


async def test_pages_have_all_names_once(served: ApiServed) -> None:
    for limit in (1, 2, 3, 10_000):
        pages = await passed(served, limit=limit)
        assert [name for page in pages for name in page.json["items"]] == NAMES
        assert [len(page.json["items"]) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    (page,) = await passed(served, limit=1, pattern="public/default/b.*")
    assert page.json == {"items": [BILLS], "filtered": True, "next": None}


async def test_a_page_begins_behind_any_number_of_names(served: ApiServed) -> None:
    for offset in range(5):
        said = await served.ask(LISTING, params={"offset": offset, "limit": 1, "count": "true"})
        assert said.json["items"] == NAMES[offset : offset + 1]
        assert said.json["total"] == 3
        if said.json["next"] is not None:
            said = await served.ask(said.headers["Link"][1:].partition(">")[0])
            assert said.json["items"] == NAMES[offset + 1 : offset + 2]
    said = await served.ask(LISTING, params={"offset": 1, "limit": 5, "pattern": "public/default/o.*"})
    assert said.json["items"] == NAMES[2:]
    for wrong in ({"offset": 1}, {"offset": 1, "limit": 1, "cursor": "x"}, {"offset": -1, "limit": 1}):
        assert (await served.ask(LISTING, params=wrong)).status == 400


async def test_a_pattern_that_is_not_applied_has_no_plan(tmp_path: Path) -> None:
    async with api_served(tmp_path, patterns={"evaluate": False}) as served:
        asked = {"pattern": "public/default/o.*", "unfiltered": "true", "plan": "true", "limit": 5}
        said = (await served.ask(LISTING, params=asked)).json
        assert (said["filtered"], said["plan"]["ranges"], said["plan"]["required"]) == (False, None, None)


async def test_a_page_behind_the_last_name_is_a_page(served: ApiServed) -> None:
    for empty in ({"offset": 3}, {"offset": 10**9}, {"offset": 0, "pattern": "public/default/none"}):
        asked = {**empty, "limit": 5, "plan": "true", "count": "true"}
        said = await served.ask(LISTING, params=asked)
        assert (said.json["items"], said.json["next"]) == ([], None)
        assert said.json["plan"]["how"]
        again = await served.ask(LISTING, params=asked, headers={"If-None-Match": said.headers["ETag"]})
        assert again.status == 304
        arrow = {"Accept": "application/vnd.apache.arrow.stream"}
        columns = await served.ask(LISTING, params={**asked, "detail": "partitions"}, headers=arrow)
        table = pa.ipc.open_stream(columns.body).read_all()
        assert (table.num_rows, "partitions" in table.column_names) == (0, True)


async def test_a_page_behind_names_that_a_mask_hides(tmp_path: Path) -> None:
    def visible(topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "bills"))

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        said = await served.ask(LISTING, params={"offset": 1, "limit": 5, "count": "true", "plan": "true"})
        assert (said.json["items"], said.json["total"]) == (NAMES[2:], 2)
        assert said.json["plan"]["looked_at"] is None


@pytest.mark.parametrize(
    ("pattern", "how", "literal"),
    [
        ("public/default/b.*", "range", None),
        ("public/default/bills", "literal", "public/default/bills"),
        (".*ill.*", "scan", None),
        (".*", "all", None),
        (None, "none", None),
    ],
)
async def test_the_plan_says_how_a_pattern_was_applied(
    served: ApiServed, pattern: str | None, how: str, literal: str | None
) -> None:
    query = {"plan": "true"} if pattern is None else {"plan": "true", "pattern": pattern}
    for more in ({}, {"limit": "1"}):
        plan = (await served.ask(LISTING, params=query | more)).json["plan"]
        assert (plan["how"], plan["literal"], plan["looked_at"]) == (how, literal, 3)
        assert plan["ms"] > 0


async def test_a_link_leads_to_the_next_page_in_every_form(served: ApiServed) -> None:
    path, names = f"{LISTING}?limit=2&pattern=public/default/%5Bbo%5D.*", []
    while True:
        said = await served.ask(path, headers={"Accept": "text/plain"})
        assert said.headers["Topics-Filtered"] == "true"
        names += said.body.decode().splitlines()
        link = said.headers.get("Link")
        if link is None:
            break
        assert link.startswith("<")
        assert link.endswith('>; rel="next"')
        path = link[1:].partition(">")[0]
    assert names == NAMES


async def test_lines_of_a_page_end_with_where_it_goes_on(served: ApiServed) -> None:
    accept = {"Accept": "application/x-ndjson"}
    said = await served.ask(LISTING, params={"limit": 2}, headers=accept)
    *items, trailer = map(json.loads, said.body.splitlines())
    assert items == NAMES[:2]
    assert trailer["topics_hash"] is None
    assert trailer["next"] == cursor_of(Position.of(NAMES[2]))
    said = await served.ask(LISTING, params={"limit": 2, "count": "true"}, headers=accept)
    assert json.loads(said.body.splitlines()[-1])["topics_hash"] == topics_hash(NAMES)


async def test_what_is_counted_is_the_whole_listing(served: ApiServed) -> None:
    for query in ({"limit": 1}, {}, {"detail": "partitions"}):
        said = (await served.ask(LISTING, params={"count": "true", **query})).json
        assert (said["total"], said["topics_hash"]) == (3, topics_hash(NAMES))
        assert ":" in said["version"]
    said = (await served.ask(LISTING, params={"count": "true", "limit": 1, "mode": "all"})).json
    assert said["total"] == 4
    assert "total" not in (await served.ask(LISTING, params={"count": "false"})).json


async def test_details_are_those_of_the_topic_with_each_partition(served: ApiServed, tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        ids = {
            name: topic_id_text(record.topic_id)
            for name in (BILLS, ORDERS)
            if (record := catalog.topic(TopicName.parse(name))) is not None
        }
    bills = {"name": BILLS, "partitions": 0, "topic_id": ids[BILLS], "properties": {"region": "us"}}
    orders = {"partitions": 2, "topic_id": ids[ORDERS], "properties": {"region": "eu"}}
    expected = [bills, *({"name": name} | orders for name in NAMES[1:])]
    query = {"detail": "properties,topic_id,partitions"}
    assert (await served.ask(LISTING, params=query)).json["items"] == expected
    pages = await passed(served, limit=2, **query)
    assert [item for page in pages for item in page.json["items"]] == expected
    said = await served.ask(LISTING, params=query, headers={"Accept": "application/x-ndjson"})
    assert [json.loads(line) for line in said.body.splitlines()[:-1]] == expected
    said = await served.ask(LISTING, params=query, headers={"Accept": "application/vnd.apache.arrow.stream"})
    table = pa.ipc.open_stream(said.body).read_all()
    assert table.to_pylist(maps_as_pydicts="strict") == expected
    (first, *_) = (await served.ask(LISTING, params={"detail": "partitions"})).json["items"]
    assert first == {"name": BILLS, "partitions": 0}


async def test_text_has_no_room_for_details(served: ApiServed) -> None:
    said = await served.ask(LISTING, params={"detail": "partitions"}, headers={"Accept": "text/plain"})
    assert said.status == 406


@pytest.mark.parametrize(
    "query", [{"limit": "2"}, {"detail": "partitions"}, {"limit": "1", "detail": "properties"}]
)
async def test_what_a_client_has_is_not_sent_again(
    served: ApiServed, tmp_path: Path, query: dict[str, str]
) -> None:
    tag = (await served.ask(LISTING, params=query)).headers["ETag"]
    assert tag.startswith('W/"')
    assert "-" in tag
    said = await served.ask(LISTING, params=query, headers={"If-None-Match": tag})
    assert (said.status, said.body) == (304, b"")
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        catalog.set_properties(TopicName.parse(BILLS), {"region": "ca"})
    said = await served.ask(LISTING, params=query, headers={"If-None-Match": tag})
    assert said.status == 200
    assert said.headers["ETag"] != tag


async def test_a_counted_whole_listing_has_the_tag_of_its_names(served: ApiServed) -> None:
    said = await served.ask(LISTING, params={"count": "true"})
    assert said.headers["ETag"] == f'W/"{topics_hash(NAMES)}"'


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ({"cursor": "nonsense"}, "parameter cursor is no cursor"),
        ({"cursor": cursor_of(Position("persistent://public/other/a"))}, "another namespace"),
        ({"limit": "0"}, "parameter limit must be a number from 1 to 10000"),
        ({"limit": "10001"}, "parameter limit must be a number from 1 to 10000"),
        ({"detail": "configs"}, "parameter detail must be of"),
        ({"count": "1"}, "parameter count must be true or false"),
    ],
)
async def test_what_is_asked_for_wrongly(served: ApiServed, query: dict[str, str], detail: str) -> None:
    said = await served.ask(LISTING, params=query)
    assert (said.status, said.json["cause"]) == (400, "BAD_REQUEST")
    assert detail in said.json["detail"]


async def test_pages_may_begin_at_the_longest_names(tmp_path: Path) -> None:
    names = [f"persistent://public/default/{letter * MAX_NAME_BYTES}" for letter in "ab"]
    async with api_served(tmp_path, topics={name: (0, {}) for name in names}) as served:
        first, second = await passed(served, limit=1)
        assert [*first.json["items"], *second.json["items"]] == names
        assert "Link" not in first.headers  # which most clients would refuse
        async with aiohttp.ClientSession(max_field_size=1 << 17) as session:
            said = await session.get(f"{served.url}{LISTING}?limit=1", headers={"Accept": "text/plain"})
            url = f"{served.url}{said.headers['Link'][1:].partition('>')[0]}"
            said = await session.get(url, headers={"Accept": "text/plain"})
            assert (await said.text()).splitlines() == names[1:]


async def test_more_names_than_one_answer_may_have_are_in_pages(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"most_items": 2}) as served:
        for query in (
            {},
            {"count": "true"},
            {"detail": "partitions"},
            {"count": "true", "detail": "partitions"},
        ):
            first, second = await passed(served, **query)
            items = [*first.json["items"], *second.json["items"]]
            assert [item["name"] if "detail" in query else item for item in items] == NAMES
            assert "Link" in first.headers
            assert first.json.get("total", 3) == 3


class Lists:
    """Lists and describes topics of its own."""

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(NAMES, filtered=False)

    @hookimpl
    def broker_core_describe_topics(self, request: DescribeRequest) -> Details:
        assert request.names is not None
        topics = request.names.to_pylist()
        return Details.of(topics, properties=[{"owner": topic} for topic in topics])


async def test_what_plugins_list_has_no_version(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"lists": Lists()}) as served:
        said = await served.ask(LISTING, params={"limit": 1, "count": "true", "detail": "properties"})
        assert said.json["items"] == [{"name": BILLS, "properties": {"owner": BILLS}}]
        assert said.json["version"] is None
        assert "ETag" not in said.headers


class Describes:
    """Says more of topics that others list."""

    @hookimpl
    def broker_core_describe_topics(self, request: DescribeRequest) -> Details:
        assert request.names is not None
        return Details.of(request.names, properties=[{"more": "yes"}] * len(request.names))


async def test_what_plugins_say_of_topics_has_no_tag(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"describes": Describes()}) as served:
        for query, tagged in (({"limit": 1}, True), ({"limit": 1, "detail": "properties"}, False)):
            said = await served.ask(LISTING, params=query)
            assert ("ETag" in said.headers) == tagged


class Hides:
    """A plugin that hides orders once a test tells it to."""

    hidden = False

    @hookimpl
    def broker_core_visible(self, topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "orders")) if self.hidden else None


async def test_rights_are_those_of_each_page(tmp_path: Path) -> None:
    hides = Hides()
    async with api_served(tmp_path, plugins={"hides": hides}) as served:
        first = await served.ask(LISTING, params={"limit": 2})
        assert first.json["items"] == NAMES[:2]
        hides.hidden = True
        said = await served.ask(LISTING, params={"limit": 2, "cursor": first.json["next"]})
        assert (said.json["items"], said.json["next"]) == ([], None)
        assert "ETag" not in said.headers
