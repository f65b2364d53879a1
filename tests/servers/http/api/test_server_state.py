"""What a server says of itself below /v1/server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from broker_core import Access, Refused
from broker_core.broker import Broker
from broker_core.plugin_api.check_findings import Check
from broker_core.servers.http import CheckResult
from broker_core.settings import Settings
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf
from tests.support.watching_client import WatchingClient

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
        assert (await served.ask("/v1/server/watchers")).status == 403


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


async def test_followed_questions_with_those_that_follow(tmp_path: Path) -> None:
    pattern = "public/default/o.*"
    async with api_served(tmp_path, catalog={"property_keys": []}, http={"questions": True}) as served:
        watching = await WatchingClient.open(served.broker.pulsar_address)
        await watching.watch(f"persistent://{pattern}", namespace="public/default")
        headers = {"Accept": "text/event-stream"}
        async with served.session.get(
            served.url + LISTING, headers=headers, params={"mode": "all"}
        ) as stream:
            await stream.content.readuntil(b"snapshot")
            said = (await served.ask("/v1/server/watchers")).json
            assert (said["watchers"], said["streams"], said["total"]) == (1, 1, 2)
            assert (said["enabled"], said["most_watchers"]) == (True, 100_000)
            (watched,) = [each for each in said["items"] if each["watchers"]]
            assert watched == {
                "namespace": "public/default",
                "mode": "PERSISTENT",
                "pattern": f"persistent://{pattern}",
                "properties": {},
                "watchers": 1,
                "streams": 0,
                "behind": 0,
                "topics": 2,
                "period_s": None,
                "problem": None,
            }
            (streamed,) = [each for each in said["items"] if each["streams"]]
            assert (streamed["mode"], streamed["topics"], streamed["pattern"]) == ("ALL", 4, None)
        watching.client.close()


async def test_a_followed_question_without_an_answer_says_why(tmp_path: Path) -> None:
    fails: list[str] = []

    def list_topics() -> None:
        if fails:
            raise RuntimeError("a secret")

    plugins = {"p": PluginOf(list_topics=list_topics)}
    async with api_served(tmp_path, plugins=plugins, http={"questions": True}) as served:
        headers = {"Accept": "text/event-stream"}
        async with served.session.get(served.url + LISTING, headers=headers) as stream:
            await stream.content.readuntil(b"snapshot")
            fails.append("now")
            served.broker.pipeline.changes.announce(None)

            async def problem() -> str | None:
                (item,) = (await served.ask("/v1/server/watchers")).json["items"]
                said: str | None = item["problem"]
                return said

            assert "secret" not in (await eventually(problem) or "")


async def test_questions_of_namespaces_that_a_gate_closes_are_not_shown(tmp_path: Path) -> None:
    closed: list[str] = []

    def gate(access: Access) -> Refused | None:
        return Refused("closed") if closed and access.asker.transport == "http" else None

    async with api_served(
        tmp_path,
        plugins={"gate": PluginOf(authorize=gate)},
        catalog={"property_keys": []},
        http={"questions": True},
    ) as served:
        watching = await WatchingClient.open(served.broker.pulsar_address)
        await watching.watch("persistent://public/default/o.*", namespace="public/default")
        closed.append("now")
        said = (await served.ask("/v1/server/watchers")).json
        assert (said["items"], said["total"], said["watchers"]) == ([], 0, 1)
        watching.client.close()


async def test_caches_grow_with_what_is_kept(served: ApiServed) -> None:
    async def cache(name: str) -> tuple[int, int]:
        items = (await served.ask("/v1/server/caches")).json["items"]
        (found,) = [each for each in items if each["name"] == name]
        assert found["limit_bytes"] > 0
        return found["entries"], found["bytes"]

    assert await cache("snapshots") == (0, 0)
    await served.ask(LISTING, params={"pattern": "public/default/never-asked-elsewhere.*"})
    entries, size = await cache("snapshots")
    assert entries >= 1
    assert 0 < size <= served.broker.pipeline.permits.snapshots.acquired
    assert (await cache("patterns"))[0] >= 1
    assert await cache("small answers") == (0, 0)
    assert await cache("plugin answers") == (0, 0)
    assert await cache("followed answers") == (0, 0)


async def test_what_check_says_of_the_settings_of_the_server(tmp_path: Path) -> None:
    late = asyncio.Event()

    async def check() -> CheckResult:
        await late.wait()
        return CheckResult([Check.error("settings", "s.toml: unknown key")], 0.0)

    settings = {"pulsar": {"listen": "127.0.0.1:0"}, "http": {"listen": "127.0.0.1:0"}}
    tables = settings | {"catalog": {"path": tmp_path / "topics.sqlite"}}
    async with (
        Broker(Settings.model_validate(tables), check=check) as broker,
        aiohttp.ClientSession() as session,
    ):
        served, budget = ApiServed(broker, session), broker.pipeline.options.time_budget
        broker.pipeline.options.time_budget = 0.0
        said = await served.ask("/v1/server/check")
        assert (said.status, said.json["cause"]) == (504, "TIME")
        broker.pipeline.options.time_budget = budget
        late.set()
        assert (await served.ask("/v1/server/check")).json == {
            "items": [{"level": "error", "name": "settings", "text": "s.toml: unknown key"}],
            "checked": "1970-01-01T00:00:00.000+00:00",
        }


async def test_settings_that_a_program_gave_cannot_be_checked(served: ApiServed) -> None:
    said = await served.ask("/v1/server/check")
    assert (said.status, said.json["cause"]) == (404, "NOT_FOUND")
