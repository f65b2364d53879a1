"""Listings as `pulsar-admin` and clients with an ``http://`` service URL ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.servers.http.admin.listings import _properties
from tests.support.api_serving import ApiServed, api_served
from tests.support.plugins import PluginOf

_HERE = "persistent://public/default"
_ALL = {
    f"{_HERE}/bills",
    f"{_HERE}/orders-partition-0",
    f"{_HERE}/orders-partition-1",
    "non-persistent://public/default/ticks",
}


async def _list(served: ApiServed, path: str) -> Any:
    said = await served.ask(f"/admin/v2/{path}")
    assert said.status == 200, said.body
    assert said.headers["Content-Type"] == "application/json"
    return said.json


async def test_domains_and_modes(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        persistent = {name for name in _ALL if name.startswith("persistent")}
        assert set(await _list(served, "persistent/public/default")) == persistent
        assert set(await _list(served, "non-persistent/public/default")) == _ALL - persistent
        topics = "namespaces/public/default/topics"
        assert set(await _list(served, topics)) == persistent
        for mode, wanted in (
            ("PERSISTENT", persistent),
            ("NON_PERSISTENT", _ALL - persistent),
            ("ALL", _ALL),
        ):
            assert set(await _list(served, f"{topics}?mode={mode}")) == wanted


async def test_partitioned_topics(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        assert await _list(served, "persistent/public/default/partitioned") == [f"{_HERE}/orders"]
        assert await _list(served, "non-persistent/public/default/partitioned") == []


async def test_properties_select(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        for sent in ("region=eu", "region%3Deu", "region=eu&properties=region=us", "nonsense,region=eu"):
            names = await _list(served, f"persistent/public/default?properties={sent}")
            assert names == [f"{_HERE}/orders-partition-0", f"{_HERE}/orders-partition-1"], sent
        assert await _list(served, "persistent/public/default/partitioned?properties=region=us") == []
        # A mistake selects nothing, as at a broker.
        assert len(await _list(served, "persistent/public/default?properties=region")) == 3


async def test_what_a_mask_hides_is_in_no_listing(tmp_path: Path) -> None:
    def visible(topics: pa.LargeStringArray) -> Any:
        return pc.invert(pc.match_substring(topics, "orders"))

    async with api_served(tmp_path, plugins={"p": PluginOf(visible=visible)}) as served:
        assert await _list(served, "persistent/public/default") == [f"{_HERE}/bills"]
        assert await _list(served, "persistent/public/default/partitioned") == []


async def test_a_namespace_that_a_plugin_lists_is_there(tmp_path: Path) -> None:
    def listed(request: ListingRequest) -> Any:
        names: Mapping[str, list[str]] = {"acme/empty": [], "acme/full": ["persistent://acme/full/a"]}
        found = names.get(str(request.namespace))
        return None if found is None else TopicListingResult.success(found)

    async with api_served(tmp_path, plugins={"p": PluginOf(list_topics=listed)}) as served:
        assert await _list(served, "persistent/acme/empty") == []
        assert await _list(served, "persistent/acme/full") == ["persistent://acme/full/a"]
        said = await served.ask("/admin/v2/persistent/acme/other")
        assert (said.status, said.json) == (404, {"reason": "Namespace does not exist"})


async def test_a_namespace_without_topics_is_there_if_it_had_some(tmp_path: Path) -> None:
    async with api_served(tmp_path, topics={f"{_HERE}/last": (0, {})}) as served:
        assert (await served.ask("/admin/v2/persistent/public/default/last", "DELETE")).status == 204
        # An error would be safer for consumers of patterns, but a broker's list is empty too.
        assert await _list(served, "persistent/public/default") == []
        assert await _list(served, "namespaces/public/default/topics?mode=ALL") == []


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ("region=eu", [("region", "eu")]),
        ("region=eu,tier=gold", [("region", "eu"), ("tier", "gold")]),
        (" region = eu ", [("region", "eu")]),
        ("region=eu+west", [("region", "eu west")]),
        ("region=caf%C3%A9", [("region", "café")]),
        ("a=b=c", [("a", "b=c")]),
        ("a%2Cb=1", [("a,b", "1")]),
        ("a=", [("a", "")]),
        # What is no pair is passed over.
        ("region", []),
        ("=eu", []),
        (",,", []),
        ("a=%zz,b=1", [("b", "1")]),
        # The library 4.2.4 sends {"x,y": "1"} in this form: the comma cannot be told from one between pairs.
        ("x,y=1", [("y", "1")]),
    ],
)
def test_pairs_of_properties(text: str, pairs: list[tuple[str, str]]) -> None:
    assert _properties(text) == pairs
