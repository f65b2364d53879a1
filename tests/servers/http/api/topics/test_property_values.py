"""The values of a property: those of the topics that a client is listed, and no others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core import DescribeRequest, Details, ListingRequest, TopicListingResult, hookimpl
from broker_core.servers.http.api import bounded_answer
from broker_core.servers.http.api.bounded_answer import MOST_BYTES
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf
from tests.support.silent_reader import silent_reader

KEYS = f"{NAMESPACE}/properties"
PATH = f"{KEYS}/region"


async def values(served: ApiServed, **query: Any) -> Mapping[str, int]:
    said = await served.ask(PATH, params=query)
    assert said.status == 200, said.json
    assert said.json["key"] == "region"
    return {item["value"]: item["names"] for item in said.json["items"]}


async def test_values_have_the_number_of_their_names(served: ApiServed) -> None:
    assert await values(served) == {"eu": 2, "us": 1}
    assert await values(served, limit=1) == {"eu": 2}
    assert await values(served, prefix="u") == {"us": 1}
    assert await values(served, pattern="public/default/o.*") == {"eu": 2}
    assert await values(served, property="region=us") == {"us": 1}
    assert await values(served, mode="non_persistent") == {}
    said = (await served.ask(f"{PATH}?limit=1&mode=all")).json
    assert (said["total"], said["listed"]) == (2, 4)
    assert await values(served, pattern="public/default/nothing") == {}


async def test_what_selects_nothing_has_no_values(served: ApiServed) -> None:
    said = await served.ask(f"{NAMESPACE}/properties/color")
    assert (said.status, "known: region" in said.json["detail"]) == (404, True)
    said = await served.ask(PATH, params={"pattern": "a(?!b)"})
    assert (said.status, said.json["retry_with"]) == (400, "unfiltered=true")
    assert await values(served, pattern="a(?!b)", unfiltered="true") == {"eu": 2, "us": 1}
    said = await served.ask(PATH, params={"pattern": "("})
    assert (said.status, said.json["error"]["offset"]) == (400, 0)


async def test_the_properties_that_select_with_their_names(tmp_path: Path) -> None:
    async with api_served(tmp_path, catalog={"property_keys": ["region", "team"]}) as served:
        region = {"key": "region", "names": 3, "values": 2}
        said = (await served.ask(KEYS)).json
        assert said == {"items": [region, {"key": "team", "names": 0, "values": 0}], "listed": 3}
        said = (
            await served.ask(KEYS, params={"pattern": "public/default/b.*", "property": "region=us"})
        ).json
        assert said["items"][0] == {"key": "region", "names": 1, "values": 1}
        assert (await served.ask(KEYS, params={"pattern": "("})).status == 400
    (tmp_path / "none").mkdir()
    async with api_served(tmp_path / "none", catalog={"property_keys": []}) as served:
        assert (await served.ask(KEYS)).json == {"items": [], "listed": 3}


async def test_what_a_mask_hides_is_not_counted(tmp_path: Path) -> None:
    def visible(topics: Any) -> pa.BooleanArray:
        return pa.array(["bills" not in name for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        assert await values(served) == {"eu": 2}
        assert (await served.ask(KEYS)).json["items"] == [{"key": "region", "names": 2, "values": 1}]


class Describing:
    """Lists two topics, and knows their properties."""

    NAMES = ("persistent://public/default/a", "persistent://public/default/b")

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(list(self.NAMES))

    @hookimpl
    def broker_core_describe_topics(self, request: DescribeRequest) -> Details:
        kind = pa.map_(pa.string(), pa.string())
        properties = pa.array([[("region", "eu")], [("color", "red")]], kind)
        topics = pa.array(self.NAMES, pa.large_string())
        return Details(pa.RecordBatch.from_arrays([topics, properties], ["topic", "properties"]))


async def test_topics_that_a_plugin_lists_are_described(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"p": Describing()}) as served:
        said = (await served.ask(PATH)).json
        assert (said["items"], said["listed"]) == ([{"value": "eu", "names": 1}], 2)
        said = (await served.ask(KEYS)).json
        assert said == {"items": [{"key": "region", "names": 1, "values": 1}], "listed": 2}


async def test_where_nothing_is_known_of_properties_that_is_said(tmp_path: Path) -> None:
    lists = PluginOf(list_topics=lambda: TopicListingResult.success(list(Describing.NAMES)))
    async with api_served(tmp_path, plugins={"p": lists}) as served:
        assert (await served.ask(PATH)).status == 404
        unknown = {"key": "region", "names": None, "values": None}
        assert (await served.ask(KEYS)).json == {"items": [unknown], "listed": 2}


async def test_long_values_fill_an_answer_before_the_limit_does(tmp_path: Path) -> None:
    topics = {
        f"persistent://public/default/t{number}": (0, {"region": _long(number)}) for number in range(30)
    }
    async with api_served(tmp_path, topics=topics) as served:
        said = await served.ask(PATH, params={"limit": 1000})
        assert said.json["total"] == 30
        assert len(said.body) <= MOST_BYTES + 200
        assert len(said.json["items"]) == MOST_BYTES // len(
            json.dumps(said.json["items"][0], separators=(",", ":"))
        )
        assert await values(served, prefix=_long(29)[:7]) == {_long(29): 1}


async def test_an_answer_that_is_not_read_holds_permits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more bytes than the kernel takes for a client that does not read."""
    monkeypatch.setattr(bounded_answer, "MOST_BYTES", 8 * MOST_BYTES)
    topics = {
        f"persistent://public/default/t{number}": (0, {"region": _long(number)}) for number in range(150)
    }
    async with api_served(tmp_path, topics=topics) as served:
        permits, path = served.broker.pipeline.permits, f"{PATH}?limit=1000"
        content = len((await served.ask(path)).body)
        assert content > 7 * MOST_BYTES
        await eventually(lambda: permits.heap.acquired == 0)
        silent = [await silent_reader(served, path) for _ in range(3)]
        await eventually(lambda: permits.heap.acquired == len(silent) * content)
        assert permits.direct.acquired >= len(silent) * 64 * 1024
        for sock in silent:
            sock.close()
        await eventually(lambda: permits.heap.acquired == 0)


def _long(number: int) -> str:
    return f"{number:07}" + "x" * 60_000
