"""One namespace: counts of the catalogue, and the client's listing if plugins have a say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.api_serving import NAMESPACE, api_served
from tests.support.chain_plugins import lists
from tests.support.plugins import PluginOf


async def test_an_unknown_namespace_has_nothing(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        said = await served.ask("/v1/namespaces/no/where")
        assert said.json["counts"] == {"persistent": 0, "non_persistent": 0, "all": 0}
        assert said.json["version"].endswith(":0")
        assert (await served.ask("/v1/namespaces/no/wh%20ere")).status == 400


async def test_what_a_mask_hides_is_not_counted(tmp_path: Path) -> None:
    def broker_core_visible(topics: Any) -> pa.BooleanArray:
        return pa.array(["partition-1" not in name for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=broker_core_visible)}) as served:
        said = await served.ask(NAMESPACE)
        assert said.json == {
            "namespace": "public/default",
            "version": None,
            "source": "catalog",
            "changed": None,
            "counts": {"persistent": 2, "non_persistent": 1, "all": 3},
        }


async def test_what_a_plugin_lists_is_counted(tmp_path: Path) -> None:
    plugin = lists("persistent://public/default/a", "non-persistent://public/default/b")
    async with api_served(tmp_path, plugins={"lister": plugin}) as served:
        said = await served.ask(NAMESPACE)
        assert said.json["counts"] == {"persistent": 1, "non_persistent": 1, "all": 2}
