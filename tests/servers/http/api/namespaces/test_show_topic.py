"""One topic by its name: details, partitions, domains, entity tags, and what is hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from yarl import URL

from broker_core.catalog import topic_id_text
from broker_core.change_log import version_text
from broker_core.names import TopicName
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.chain_plugins import fails, lists
from tests.support.plugins import PluginOf

TOPICS = f"{NAMESPACE}/topics"


async def test_all_that_is_known_is_shown(served: ApiServed) -> None:
    assert served.broker.catalog is not None
    name = "persistent://public/default/orders"
    record = served.broker.catalog.topic(TopicName.parse(name))
    assert record is not None
    said = await served.ask(f"{TOPICS}/orders")
    assert said.json == {
        "name": name,
        "partitions": 2,
        "properties": {"region": "eu"},
        "configs": {},
        "replication": None,
        "topic_id": topic_id_text(record.topic_id),
        "created": record.created.isoformat(timespec="milliseconds"),
        "version": version_text(served.broker.catalog.version(record.name.namespace)),
    }
    bills = await served.ask(f"{TOPICS}/bills")
    assert (bills.json["name"], bills.json["partitions"]) == ("persistent://public/default/bills", 0)
    ticks = await served.ask(f"{TOPICS}/{quote('non-persistent://public/default/ticks', safe='')}")
    assert ticks.status == 200, ticks.json
    assert ticks.json["properties"] == {}


async def test_a_partition_is_shown_by_its_name(served: ApiServed) -> None:
    said = await served.ask(f"{TOPICS}/orders-partition-1")
    assert said.json == (await served.ask(f"{TOPICS}/orders")).json
    for absent in ("orders-partition-2", "orders-partition-01", "bills-partition-0"):
        assert (await served.ask(f"{TOPICS}/{absent}")).status == 404


@pytest.mark.parametrize("absent", ["order", "orders.", "Bills", "ticks", "__change_events"])
async def test_what_is_not_there_is_a_404(served: ApiServed, absent: str) -> None:
    said = await served.ask(f"{TOPICS}/{absent}")
    assert (said.status, said.json["cause"]) == (404, "NOT_FOUND")


async def test_names_are_percent_encoded(tmp_path: Path) -> None:
    local = 'a.b+c d"é#?%2F*[x]'
    topics = {f"persistent://public/default/{local}": (0, {"k": "v"})}
    async with api_served(tmp_path, topics=topics) as served:
        url = URL(f"{served.url}{TOPICS}/{quote(local, safe='')}", encoded=True)
        async with served.session.get(url) as response:
            assert response.status == 200
            assert (await response.json())["name"] == f"persistent://public/default/{local}"
        for wrong in ("a%2Fb", "%00", "x?domain=persistent"):
            async with served.session.get(URL(f"{served.url}{TOPICS}/{wrong}", encoded=True)) as response:
                assert response.status == 400, wrong


async def test_an_entity_tag_is_another_one_after_each_change(served: ApiServed) -> None:
    catalog = served.broker.catalog
    assert catalog is not None
    name = TopicName.parse("persistent://public/default/bills")
    path = f"{TOPICS}/bills"
    first = (await served.ask(path)).headers["ETag"]
    again = await served.ask(path, headers={"If-None-Match": f'"x", W/{first}'})
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", first)
    catalog.set_properties(name, {"region": "eu"})
    second = await served.ask(path, headers={"If-None-Match": first})
    assert second.status == 200
    catalog.delete(name)
    catalog.create(name, properties={"region": "us"})
    third = (await served.ask(path)).headers["ETag"]
    assert len({first, second.headers["ETag"], third}) == 3


async def test_what_a_mask_hides_is_as_what_is_not_there(tmp_path: Path) -> None:
    def broker_core_visible(topics: Any) -> pa.BooleanArray:
        return pa.array([name.endswith("orders-partition-0") for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=broker_core_visible)}) as served:
        absent, hidden = await served.ask(f"{TOPICS}/absent"), await served.ask(f"{TOPICS}/bills")
        assert (absent.status, hidden.status) == (404, 404)
        assert hidden.body.replace(b"bills", b"absent") == absent.body
        orders = (await served.ask(f"{TOPICS}/orders")).json
        assert (orders["partitions"], orders["version"]) == (2, None)
        assert (await served.ask(f"{TOPICS}/orders-partition-0")).status == 200
        assert (await served.ask(f"{TOPICS}/orders-partition-1")).status == 404


async def test_what_a_plugin_lists_is_shown(tmp_path: Path) -> None:
    plugin = lists(*(f"persistent://public/default/mine-partition-{number}" for number in range(3)))
    async with api_served(tmp_path, plugins={"lister": plugin}) as served:
        said = await served.ask(f"{TOPICS}/mine")
        assert said.json == {
            "name": "persistent://public/default/mine",
            "partitions": 3,
            "properties": None,
            "configs": None,
            "replication": None,
            "topic_id": None,
            "created": None,
            "version": None,
        }
        assert (await served.ask(f"{TOPICS}/bills")).status == 404


async def test_a_plugin_that_fails_is_no_404(tmp_path: Path) -> None:
    async with api_served(tmp_path, plugins={"lister": fails(RuntimeError("secret"))}) as served:
        said = await served.ask(f"{TOPICS}/bills")
        assert said.status == 502
        assert b"secret" not in said.body


async def test_one_topic_of_the_catalogue_is_not_looked_for_in_a_listing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics: dict[str, Any] = {
        "persistent://public/default/large": (1_000_000, {}),
        "persistent://public/default/__change_events": (0, {}),
    }
    async with api_served(tmp_path, topics=topics) as served:
        monkeypatch.setattr(served.broker.pipeline, "answer", None)
        said = await served.ask(f"{TOPICS}/large")
        assert (said.status, said.json["partitions"]) == (200, 1_000_000)
        assert (await served.ask(f"{TOPICS}/large-partition-7")).json == said.json
        assert (await served.ask(f"/v1/topics/by-id/{said.json['topic_id']}")).json == said.json
        assert (await served.ask(f"{TOPICS}/absent")).status == 404
        assert (await served.ask(f"{TOPICS}/__change_events")).status == 404
