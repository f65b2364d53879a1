"""The history of one topic: made, changed, deleted, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker_core import Access, Refused
from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from broker_core.servers.http.api.bounded_answer import MOST_BYTES
from tests.support.api_serving import NAMESPACE, ApiServed, api_served, catalog_of
from tests.support.plugins import PluginOf

NEW = TopicName("persistent", NamespaceName("public", "default"), "new")
PATH = f"{NAMESPACE}/topics/new/history"


async def test_a_topic_is_known_from_its_making_to_its_end_and_again(served: ApiServed) -> None:
    catalog: SqliteCatalog = catalog_of(served)
    catalog.create(NEW, partitions=3, properties={"a": "1"})
    catalog.set_properties(NEW, {"a": "2"})
    catalog.delete(NEW)
    made = catalog.create(NEW)
    said = (await served.ask(PATH)).json
    assert (said["topic"], said["complete"]) == (str(NEW), True)
    again, deleted, changed, first = said["items"]
    assert [each["operation"] for each in said["items"]] == ["create", "delete", "update", "create"]
    assert first["before"] is None
    assert first["after"] == {"names": 3, "properties": {"a": "1"}, "configs": {}}
    assert (changed["before"]["properties"], changed["after"]["properties"]) == ({"a": "1"}, {"a": "2"})
    assert (deleted["before"]["properties"], deleted["after"]) == ({"a": "2"}, None)
    assert (again["before"], again["after"]) == (None, {"names": 1, "properties": {}, "configs": {}})
    assert len({each["topic_id"] for each in said["items"]}) == 2
    assert again["version"] == catalog.version(NEW.namespace).number
    assert made.name == NEW
    assert (await served.ask(f"{NAMESPACE}/topics/new-partition-1/history")).json["items"] == said["items"]
    short = (await served.ask(f"{PATH}?limit=1")).json
    assert (short["items"], short["complete"]) == ([again], False)
    assert short["says"] == "The history was cut after 1 change; there may be older ones."


async def test_a_name_that_never_was_has_no_history(served: ApiServed) -> None:
    said = await served.ask(PATH)
    assert said.json == {"topic": str(NEW), "items": [], "complete": True, "says": None}
    assert (await served.ask("/v1/namespaces/no/where/topics/x/history")).json["complete"] is True


async def test_it_tells_nothing_that_a_listing_hides(tmp_path: Path) -> None:
    def visible(topics: Any) -> pa.BooleanArray:
        return pc.invert(pc.match_substring(topics, "hidden"))

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=visible)}) as served:
        catalog = catalog_of(served)
        hidden = TopicName("persistent", NEW.namespace, "hidden")
        for topic in (NEW, hidden):
            catalog.create(topic, properties={"a": "1"})
        catalog.delete(NEW)
        assert (await served.ask(PATH)).json["items"] == []  # masks cannot be asked about what is gone
        catalog.create(NEW)
        said = (await served.ask(PATH)).json
        # Not the topic before, and no version: that counts what is hidden.
        assert [(each["operation"], each["version"]) for each in said["items"]] == [("create", None)]
        assert (said["complete"], "Plugins hide topics" in said["says"]) == (False, True)
        # Nothing tells a hidden topic from one that never was.
        for other in (hidden, TopicName("persistent", NEW.namespace, "never")):
            found = (await served.ask(f"{NAMESPACE}/topics/{other.local}/history")).json
            assert found == {**said, "topic": str(other), "items": []}

    def fails(topics: Any) -> pa.BooleanArray:
        raise ValueError(f"no mask of {len(topics)} topics today")

    (tmp_path / "failing").mkdir()
    async with api_served(tmp_path / "failing", plugins={"mask": PluginOf(visible=fails)}) as served:
        catalog_of(served).create(NEW)
        assert (await served.ask(PATH)).status == 502
    (tmp_path / "rules").mkdir()
    rules = [
        {"roles": ["anyone"], "namespaces": ["*"], "actions": ["list"]},
        {"roles": ["anyone"], "namespaces": ["*"], "actions": ["list"], "effect": "deny", "topics": ["ne*"]},
    ]
    async with api_served(
        tmp_path / "rules",
        authentication={"anonymous_role": "anyone"},
        authorization={"rules": rules},
    ) as served:
        assert (await served.ask(PATH)).status == 403
        assert len((await served.ask(f"{NAMESPACE}/topics/orders/history")).json["items"]) == 1

    def gate(access: Access) -> Refused | None:
        return Refused("closed") if access.action == "list" else None

    (tmp_path / "gate").mkdir()
    async with api_served(tmp_path / "gate", plugins={"gate": PluginOf(authorize=gate)}) as served:
        assert (await served.ask(f"{NAMESPACE}/topics/orders/history")).status == 403


async def test_long_properties_fill_an_answer_before_the_limit_does(tmp_path: Path) -> None:
    async with api_served(tmp_path) as served:
        catalog = catalog_of(served)
        catalog.create(NEW)
        for number in range(20):
            catalog.set_properties(NEW, {"a": f"{number}" + "x" * 60_000})
        said = await served.ask(f"{PATH}?limit=1000")
        assert MOST_BYTES // 2 < len(said.body) <= MOST_BYTES + 500
        assert said.json["complete"] is False
        newest = [each["after"]["properties"]["a"].rstrip("x") for each in said.json["items"]]
        assert newest == [str(number) for number in range(19, 19 - len(newest), -1)]
        catalog.set_properties(NEW, {"a": "\N{GRINNING FACE}" * 16_000})  # twelve bytes of JSON each
        said = await served.ask(f"{PATH}?limit=1000")
        assert len(said.body) <= MOST_BYTES + 500
