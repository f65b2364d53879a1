"""The namespaces of a cluster by the web service of its brokers, as a gateway's clients get them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from broker_core.access import Asker
from broker_core.broker import Broker
from broker_core.settings import Settings
from broker_core.upstream.pulsar import web_service
from broker_core.upstream.pulsar.web_service import ClusterNamespaces
from tests.support.admin_server import AdminServer, Fault
from tests.support.api_serving import ApiServed, Said
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster


@asynccontextmanager
async def gateway(admin_url: str | None = None, **upstream: Any) -> AsyncIterator[ApiServed]:
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = ["persistent://t/n/a"]
        behind = {"service_url": cluster.url, **({"admin_url": admin_url} if admin_url else {}), **upstream}
        settings = {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "upstream": behind,
        }
        async with Broker(Settings.model_validate(settings)) as broker, aiohttp.ClientSession() as session:
            yield ApiServed(broker, session)


async def namespaces(served: ApiServed, **query: Any) -> Said:
    return await served.ask("/v1/namespaces", params=query)


def names(said: Said) -> list[str]:
    assert said.status == 200, said.json
    return [each["namespace"] for each in said.json["items"]]


async def test_all_namespaces_of_the_cluster_page_by_page() -> None:
    async with AdminServer() as admin:
        for name in ("acme/orders", "acme/bills", "public/default", "other/über", "x/~"):
            admin.namespace(name)
        async with gateway(admin.url) as served:
            said = await namespaces(served, count="true")
            # Names that no namespace can have here are none that could be listed.
            assert names(said) == ["acme/bills", "acme/orders", "public/default"]
            assert (said.json["total"], said.json["complete"], said.json["next"]) == (3, True, None)
            assert said.json["items"][0] == {
                "namespace": "acme/bills",
                "version": None,
                "counts": None,
                "source": "upstream",
                "changed": None,
            }
            assert names(await namespaces(served, prefix="acme/", contains="rd")) == ["acme/orders"]
            first = await namespaces(served, limit=2)
            rest = await namespaces(served, limit=2, cursor=first.json["next"])
            assert names(first) + names(rest) == ["acme/bills", "acme/orders", "public/default"]
            asked = len(admin.requests)
            assert asked == 1 + len({"acme", "public", "other", "x"}), "once for all of these"


async def test_many_that_ask_at_once_ask_the_cluster_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_service, "_FRESH", 0.0)
    waiting: list[Asker] = []
    names_for = ClusterNamespaces.names

    async def counted(self: ClusterNamespaces, asker: Asker) -> Sequence[str]:
        waiting.append(asker)
        return await names_for(self, asker)

    monkeypatch.setattr(ClusterNamespaces, "names", counted)
    async with AdminServer() as admin:
        admin.namespace("acme/orders")
        admin.hanging.add("tenants")
        async with gateway(admin.url) as served:
            questions = [asyncio.create_task(namespaces(served)) for _ in range(8)]
            await eventually(lambda: len(waiting) == len(questions), what="all wait for the cluster")
            admin.let_go()
            found = await asyncio.gather(*questions)
            assert {tuple(names(said)) for said in found} == {("acme/orders",)}
            assert admin.requests == ["tenants", "namespaces/acme"]
            admin.namespace("acme/bills")
            assert names(await namespaces(served)) == ["acme/bills", "acme/orders"]


async def test_a_tenant_that_is_gone_meanwhile_is_no_error() -> None:
    async with AdminServer() as admin:
        admin.namespace("acme/orders")
        admin.answers["tenants"] = ["acme", "gone"]
        async with gateway(admin.url) as served:
            assert names(await namespaces(served)) == ["acme/orders"]


@pytest.mark.parametrize(
    ("path", "fault", "status", "text"),
    [
        (
            "tenants",
            Fault(403, '{"reason": "This operation requires super-user access"}'),
            403,
            "The cluster lists its namespaces only for roles that may administer its tenants: This operation requires",
        ),
        ("tenants", Fault(401, '{"reason": "Authentication required"}'), 502, "Authentication required"),
        ("namespaces/acme", Fault(200, "[1, 2]"), 502, "no JSON array of texts"),
        ("namespaces/acme", Fault(200, "<html>"), 502, "no JSON"),
        ("tenants", Fault(404, "nothing here"), 404, "404"),
    ],
)
async def test_what_it_does_not_tell_is_an_error(path: str, fault: Fault, status: int, text: str) -> None:
    async with AdminServer() as admin:
        admin.namespace("acme/orders")
        admin.fail(path, fault, always=True)
        async with gateway(admin.url) as served:
            said = await namespaces(served)
            assert (said.status, text in said.json["detail"]) == (status, True), said.json


async def test_names_beyond_all_measure_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_service, "_MOST", 1000)
    async with AdminServer() as admin:
        for number in range(100):
            admin.namespace(f"tenant-{number}/orders")
        async with gateway(admin.url) as served:
            said = await namespaces(served)
            assert (said.status, "bytes" in said.json["detail"]) == (502, True), said.json


async def test_without_its_address_those_are_known_that_were_listed() -> None:
    async with gateway() as served:
        unknown = await namespaces(served)
        assert (unknown.status, "set upstream.admin_url" in unknown.json["detail"]) == (501, True)
        await served.ask("/v1/namespaces/t/n/topics")
        await served.ask("/v1/namespaces/t/empty/topics")
        said = await namespaces(served, count="true")
        assert (names(said), said.json["complete"], said.json["total"]) == (["t/n"], False, 1)
    async with gateway(snapshots={"mode": "off"}) as served:
        await served.ask("/v1/namespaces/t/n/topics")
        assert (await namespaces(served)).status == 501
