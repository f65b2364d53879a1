"""What a server says of itself below /v1/server."""

from __future__ import annotations

from pathlib import Path

from broker_core import Access, Refused
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.plugins import PluginOf

LISTING = f"{NAMESPACE}/topics"


async def test_plugins_are_those_of_the_page(tmp_path: Path) -> None:
    def fails(access: Access) -> None:
        raise RuntimeError("a secret")

    async with api_served(tmp_path, plugins={"p": PluginOf(authorize=fails)}) as served:
        await served.ask(LISTING)
        said = await served.ask("/v1/server/plugins")
        assert said.json["items"] == (await served.ask("/plugins")).json["plugins"]
        assert said.json["items"][0]["calls"]["authorize"]["calls"] == 1
        assert "secret" not in said.body.decode()


async def test_metrics_are_those_that_are_scraped(served: ApiServed) -> None:
    await served.ask(LISTING)
    said = await served.ask("/v1/server/metrics?name=broker_core_http_requests_total&name=process_")
    (listed,) = [
        each for each in said.json["items"] if each["labels"] == {"operation": "listTopics", "status": "200"}
    ]
    assert (listed["name"], listed["type"], listed["value"]) == (
        "broker_core_http_requests_total",
        "counter",
        1,
    )
    assert any(each["name"] == "process_open_fds" for each in said.json["items"])
    assert said.json["total"] == len(said.json["items"])
    scraped = (await served.ask("/metrics")).body.decode()
    everything = (await served.ask("/v1/server/metrics")).json["items"]
    samples = [line for line in scraped.splitlines() if not line.startswith("#")]
    assert len(everything) == len(samples)


async def test_questions_come_by_their_number_or_their_time(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"questions": True}) as served:
        for pattern, times in (("public/default/b.*", 3), ("public/default/o.*", 1)):
            for _ in range(times):
                await served.ask(LISTING, params={"pattern": pattern})
        said = (await served.ask("/v1/server/questions?limit=1")).json
        assert (said["total"], len(said["items"])) == (2, 1)
        assert (said["items"][0]["pattern"], said["items"][0]["count"]) == ("public/default/b.*", 3)
        for order in ("seconds", "mean"):
            items = (await served.ask(f"/v1/server/questions?order={order}")).json["items"]
            key = {"seconds": "seconds", "mean": "mean_ms"}[order]
            assert items == sorted(items, key=lambda each: -each[key])
    (tmp_path / "off").mkdir()
    async with api_served(tmp_path / "off") as served:
        assert (await served.ask("/v1/server/questions")).status == 403


async def test_questions_of_what_a_gate_refuses_are_left_out(tmp_path: Path) -> None:
    def gate(access: Access) -> Refused | None:
        return Refused("closed") if str(access.namespace) == "closed/one" else None

    plugins = {"gate": PluginOf(authorize=gate)}
    async with api_served(tmp_path, plugins=plugins, http={"questions": True}) as served:
        await served.ask(LISTING)
        await served.ask("/v1/namespaces/closed/one/topics")
        items = (await served.ask("/v1/server/questions")).json["items"]
        assert {each["namespace"] for each in items} == {"public/default"}


async def test_permits_and_the_last_hour(served: ApiServed) -> None:
    budgets = {each["name"]: each for each in (await served.ask("/v1/server/permits")).json["items"]}
    heap = served.broker.pipeline.permits.heap
    assert budgets["heap"]["limit_bytes"] == heap.maximum
    assert budgets.keys() == {"heap", "direct", "reserve", "snapshots", "unkept snapshots"}
    said = (await served.ask("/v1/server/history")).json
    assert (said["interval_s"], said["until"]) == (10.0, None)
    assert "listings_per_s" in said["series"]
