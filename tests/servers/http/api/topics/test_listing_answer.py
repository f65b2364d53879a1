from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.listing.listing_hash import topics_hash
from tests.support.api_serving import NAMESPACE, ApiServed, api_served

LISTING = f"{NAMESPACE}/topics"
NAMES = [
    "persistent://public/default/bills",
    *(f"persistent://public/default/orders-partition-{number}" for number in range(2)),
]
HASH = topics_hash(NAMES)


async def test_the_forms(served: ApiServed) -> None:
    said = await served.ask(LISTING)
    assert said.headers["Content-Type"] == "application/json"
    assert said.json == {"items": NAMES, "filtered": False, "next": None}
    said = await served.ask(LISTING, headers={"Accept": "text/plain"})
    assert said.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert said.body.decode().splitlines() == NAMES
    said = await served.ask(LISTING, headers={"Accept": "application/x-ndjson"})
    *lines, trailer = map(json.loads, said.body.splitlines())
    assert (lines, trailer) == (NAMES, {"topics_hash": HASH, "filtered": False, "next": None})
    said = await served.ask(LISTING, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert pa.ipc.open_stream(said.body).read_all().to_pydict() == {"name": NAMES}
    assert said.headers["Topics-Filtered"] == "false"
    said = await served.ask(LISTING, headers={"Accept": "image/png"})
    assert (said.status, said.json["title"]) == (406, "Not Acceptable")


async def test_caches_keep_it_for_who_asked_and_ask_again(served: ApiServed) -> None:
    for method in ("GET", "HEAD"):
        said = await served.ask(LISTING, method)
        assert said.headers["ETag"] == f'W/"{HASH}"'
        assert said.headers["Vary"] == "Accept, Accept-Encoding, Authorization"
        assert said.headers["Cache-Control"] == "private, no-cache"
        assert (said.body == b"") == (method == "HEAD")


@pytest.mark.parametrize("held", [f'W/"{HASH}"', f'"{HASH}"', f'"other", W/"{HASH}"', "*"])
async def test_a_client_that_has_it_is_told_so(served: ApiServed, held: str) -> None:
    for accept in ("application/json", "text/plain"):
        said = await served.ask(LISTING, headers={"If-None-Match": held, "Accept": accept})
        assert (said.status, said.body) == (304, b"")
        assert said.headers["ETag"] == f'W/"{HASH}"'
        assert said.headers["Vary"] == "Accept, Accept-Encoding, Authorization"


@pytest.mark.parametrize("held", ['W/"00000000"', '"a", "b"'])
async def test_a_client_that_has_another_gets_it(served: ApiServed, held: str) -> None:
    said = await served.ask(LISTING, headers={"If-None-Match": held})
    assert (said.status, said.json["items"]) == (200, NAMES)


@pytest.mark.parametrize("query", ["", "?limit=1", "?limit=1&count=true&detail=partitions"])
async def test_what_is_no_tag_is_refused(served: ApiServed, query: str) -> None:
    said = await served.ask(LISTING + query, headers={"If-None-Match": HASH})
    assert said.status == 400
    assert said.json["detail"] == 'parameter If-None-Match must be * or entity tags, such as "xyzzy"'


async def test_an_empty_listing_has_a_tag_too(served: ApiServed) -> None:
    said = await served.ask("/v1/namespaces/no/where/topics")
    tag = said.headers["ETag"]
    assert tag == 'W/"00000000"'
    said = await served.ask("/v1/namespaces/no/where/topics", headers={"If-None-Match": tag})
    assert said.status == 304


class Many:
    """Lists so many topics that they are no small answer."""

    names = tuple(f"persistent://public/default/{number:06d}-{'x' * 60}" for number in range(20_000))

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(self.names, filtered=False)


async def test_large_ones_are_the_same_in_pieces_and_in_gzip(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"many": Many()}) as served:
        for encoding in ("identity", "gzip"):
            headers = {"Accept": "text/plain", "Accept-Encoding": encoding}
            said = await served.ask(LISTING, headers=headers, skip_auto_headers=["Accept-Encoding"])
            assert said.headers.get("Content-Encoding", "identity") == encoding
            assert said.body.decode().splitlines() == list(Many.names)
            headers["Accept"] = "application/json"
            said = await served.ask(LISTING, headers=headers)
            assert said.json["items"] == list(Many.names)


async def test_gzip_of_a_small_one_is_whole(tmp_path: Path) -> None:
    topics: dict[str, tuple[int, dict[str, str]]] = {
        f"persistent://public/default/{number}": (0, {}) for number in range(100)
    }
    async with api_served(tmp_path, topics=topics) as served:
        reader = await served.raw(
            f"GET {LISTING} HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n"
            "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n".encode()
        )
        head, _, body = reader.partition(b"\r\n\r\n")
        assert b"Content-Encoding: gzip" in head
        assert len(gzip.decompress(body).splitlines()) == 100


async def test_a_name_that_is_no_line_is_refused_as_text_alone(tmp_path: Path) -> None:
    name = "persistent://public/default/two\nlines"
    async with api_served(tmp_path, topics={name: (0, {})}) as served:
        said = await served.ask(LISTING, headers={"Accept": "text/plain"})
        assert (said.status, "line feed" in said.json["detail"]) == (406, True)
        assert (await served.ask(LISTING)).json["items"] == [name]
