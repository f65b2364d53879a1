"""The configs of a topic: what the topic sets, what the settings say, and Kafka's defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.chain_plugins import lists

TOPICS = f"{NAMESPACE}/topics"


async def configs(served: ApiServed, topic: str = "orders", **query: str) -> dict[str, Any]:
    said = await served.ask(f"{TOPICS}/{topic}/configs", params=query)
    assert said.status == 200, said.json
    assert said.json["topic"] == "persistent://public/default/orders"
    return {each["name"]: each for each in said.json["items"]}


async def test_each_says_where_it_is_from(tmp_path: Path) -> None:
    kafka = {"listen": "127.0.0.1:0", "configs": {"retention.ms": "1000", "cleanup.policy": "compact"}}
    async with api_served(tmp_path, kafka=kafka) as served:
        merge = {"Content-Type": "application/merge-patch+json"}
        body = '{"configs": {"retention.ms": "5000"}}'
        assert (await served.ask(f"{TOPICS}/orders", "PATCH", data=body, headers=merge)).status == 200
        found = await configs(served)
        assert found["retention.ms"] == {
            "name": "retention.ms",
            "value": "5000",
            "source": "topic",
            "type": "LONG",
            "synonyms": [
                {"name": "retention.ms", "value": "5000", "source": "topic"},
                {"name": "log.retention.ms", "value": "1000", "source": "settings"},
                {"name": "log.retention.hours", "value": "168", "source": "default"},
            ],
        }
        sources = {name: found[name]["source"] for name in ("cleanup.policy", "segment.bytes")}
        assert sources == {"cleanup.policy": "settings", "segment.bytes": "default"}
        assert found["min.insync.replicas"]["source"] == "default"
        assert found == await configs(served, "orders-partition-1")
        assert "documentation" not in found["retention.ms"]
        documented = await configs(served, documentation="true")
        assert "retain" in documented["retention.ms"]["documentation"]


async def test_what_a_client_may_not_see_has_none(served: ApiServed) -> None:
    assert (await served.ask(f"{TOPICS}/none/configs")).status == 404
    assert (await configs(served))["retention.ms"]["source"] == "default"


async def test_configs_that_are_not_known_are_null(tmp_path: Path) -> None:
    plugins = {"p": lists("persistent://public/default/theirs")}
    async with api_served(tmp_path, plugins=plugins) as served:
        said = await served.ask(f"{TOPICS}/theirs/configs")
        assert said.json == {"topic": "persistent://public/default/theirs", "items": None}
