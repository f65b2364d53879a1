"""The values of a property: those of the topics that a client is listed, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker_core import DescribeRequest, Details, ListingRequest, TopicListingResult, hookimpl
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.plugins import PluginOf

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
