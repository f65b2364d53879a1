"""Topics by their ids: shown, hidden, deleted, and not mistaken for others of the same name."""

from __future__ import annotations

import asyncio
import io
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core.catalog import AsyncCatalog, import_topics, parse_topic_id
from broker_core.names import NamespaceName, TopicName
from tests.support.api_serving import NAMESPACE, ApiServed, api_served, catalog_of
from tests.support.chain_plugins import lists
from tests.support.plugins import PluginOf

TOPICS = f"{NAMESPACE}/topics"
BY_ID = "/v1/topics/by-id"


def id_of(served: ApiServed, local: str) -> uuid.UUID:
    record = catalog_of(served).topic(TopicName.parse(f"persistent://public/default/{local}"))
    assert record is not None
    return record.topic_id


async def test_a_topic_is_shown_by_its_id_however_it_is_written(served: ApiServed) -> None:
    by_name = await served.ask(f"{TOPICS}/orders")
    text = by_name.json["topic_id"]
    topic_id = parse_topic_id(text)
    for written in (text, f"{text}==", str(topic_id), topic_id.hex):
        said = await served.ask(f"{BY_ID}/{written}")
        assert (said.status, said.json) == (200, by_name.json)
        assert said.headers["ETag"] == by_name.headers["ETag"]
    again = await served.ask(f"{BY_ID}/{text}", headers={"If-None-Match": by_name.headers["ETag"]})
    assert again.status == 304


async def test_standard_base64_is_read_with_its_slash_escaped(served: ApiServed) -> None:
    line = b'{"name": "odd", "topic_id": "+/+/QYyE8maO/j3eRw+//w=="}'
    await asyncio.to_thread(
        import_topics, catalog_of(served), NamespaceName("public", "default"), io.BytesIO(line)
    )
    for written in ("+%2F+%2FQYyE8maO%2Fj3eRw+%2F%2Fw==", "%2B%2F%2B%2FQYyE8maO%2Fj3eRw%2B%2F%2Fw"):
        said = await served.ask(f"{BY_ID}/{written}")
        assert (said.status, said.json.get("topic_id")) == (200, "-_-_QYyE8maO_j3eRw-__w")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_ids_that_no_topic_has(served: ApiServed, method: str) -> None:
    for unknown in (
        "AAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAAQ",
        "pLW3lPqvQYyE8maO_j3eRw",
        uuid.UUID(int=7),
    ):
        said = await served.ask(f"{BY_ID}/{unknown}", method)
        assert (said.status, said.json["cause"]) == (404, "NOT_FOUND")
    for wrong in ("orders", "pLW3lPqvQYyE8maO_j3eR", "pLW3lPqvQYyE8maO_j3eRw="):
        said = await served.ask(f"{BY_ID}/{wrong}", method)
        assert (said.status, said.json["cause"]) == (400, "BAD_REQUEST")


async def test_a_topic_is_deleted_by_its_id(served: ApiServed) -> None:
    path = f"{BY_ID}/{id_of(served, 'orders')}"
    tag = (await served.ask(path)).headers["ETag"]
    assert (await served.ask(path, "DELETE", headers={"If-Match": '"stale"'})).status == 412
    gone = await served.ask(path, "DELETE", headers={"If-Match": tag})
    assert (gone.status, gone.body) == (204, b"")
    assert "Namespace-Version" in gone.headers
    assert (await served.ask(f"{TOPICS}/orders")).status == 404
    assert (await served.ask(path, "DELETE")).status == 404


async def test_no_topic_is_deleted_that_got_the_name_meanwhile(
    served: ApiServed, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, former = catalog_of(served), id_of(served, "bills")
    find = AsyncCatalog.topics_by_id_now

    def found_and_replaced(self: AsyncCatalog, ids: Sequence[uuid.UUID]) -> Any:
        found = find(self, ids)
        assert found is not None
        assert found[0] is not None
        catalog.delete(found[0].name)
        catalog.create(found[0].name)
        return found

    monkeypatch.setattr(AsyncCatalog, "topics_by_id_now", found_and_replaced)
    assert (await served.ask(f"{BY_ID}/{former}", "DELETE")).status == 404
    assert id_of(served, "bills") != former


async def test_what_is_hidden_is_as_what_is_not_there(tmp_path: Path) -> None:
    def broker_core_visible(topics: Any) -> pa.BooleanArray:
        return pa.array([name.endswith("orders-partition-0") for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=broker_core_visible)}) as served:
        assert (await served.ask(f"{BY_ID}/{id_of(served, 'bills')}")).status == 404
        orders = await served.ask(f"{BY_ID}/{id_of(served, 'orders')}")
        assert (orders.json["name"], orders.json["version"]) == ("persistent://public/default/orders", None)
    other = tmp_path / "other"
    other.mkdir()
    plugin = lists("persistent://public/default/bills")
    async with api_served(other, plugins={"lister": plugin}) as served:
        assert (await served.ask(f"{BY_ID}/{id_of(served, 'bills')}")).status == 404, (
            "the plugin's is another one"
        )


def rules(*actions: str) -> dict[str, Any]:
    own = [{"roles": ["reader"], "namespaces": ["public/default"], "actions": list(actions)}]
    return {
        "authentication": {"methods": [], "anonymous_role": "reader"},
        "authorization": {"rules": own, "mode": "rules"},
    }


async def test_who_may_not_list_is_told_of_no_topic(tmp_path: Path) -> None:
    async with api_served(tmp_path, **rules("lookup")) as served:
        bills, absent = id_of(served, "bills"), "pLW3lPqvQYyE8maO_j3eRw"
        for method in ("GET", "DELETE"):
            unseen = await served.ask(f"{BY_ID}/{bills}", method)
            assert (unseen.status, unseen.json["cause"]) == (404, "NOT_FOUND")
            unknown = await served.ask(f"{BY_ID}/{absent}", method)
            assert unseen.json.keys() == unknown.json.keys()
        assert id_of(served, "bills") == bills


async def test_writes_may_be_off(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"writes": False}) as served:
        for topic_id in (id_of(served, "bills"), "pLW3lPqvQYyE8maO_j3eRw"):
            said = await served.ask(f"{BY_ID}/{topic_id}", "DELETE")
            assert (said.status, said.json["cause"]) == (403, "NOT_ALLOWED")


async def test_brokers_have_the_topics(tmp_path: Path) -> None:
    upstream = {"service_url": "pulsar://127.0.0.1:1"}
    async with api_served(tmp_path, upstream=upstream) as served:
        for method in ("GET", "DELETE"):
            said = await served.ask(f"{BY_ID}/pLW3lPqvQYyE8maO_j3eRw", method)
            assert (said.status, said.json["cause"]) == (501, "NOT_ALLOWED")
