"""Tenants, namespaces and policies for `pulsar-admin`."""

from __future__ import annotations

import json
from pathlib import Path

from broker_core import Refused
from broker_core.access.asker import Access
from tests.support.api_serving import api_served
from tests.support.plugins import PluginOf
from tests.support.vectors import VECTORS

#: What only the namespace in the recording has.
_OF_THE_NAMESPACE = {"clusterThatCanDeleteNamespace"}
_TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "persistent://acme/orders/a": (0, {}),
    "persistent://acme/bills/a": (0, {}),
    "persistent://umbrella/t/a": (0, {}),
}


async def test_those_that_have_topics(tmp_path: Path) -> None:
    async with api_served(tmp_path, topics=_TOPICS) as served:
        assert (await served.ask("/admin/v2/tenants")).json == ["acme", "umbrella"]
        assert (await served.ask("/admin/v2/namespaces/acme")).json == ["acme/bills", "acme/orders"]
        said = await served.ask("/admin/v2/namespaces/nobody")
        assert (said.status, said.json) == (404, {"reason": "Tenant not found"})
        said = await served.ask("/admin/v2/namespaces/acme/nowhere")
        assert (said.status, said.json) == (404, {"reason": "Namespace does not exist"})


async def test_policies_are_those_of_a_new_namespace_of_a_broker(tmp_path: Path) -> None:
    exchanges = json.loads((VECTORS / "pulsar-4.2.4-admin.json").read_text(encoding="utf-8"))["exchanges"]
    (recorded,) = (
        each["answer"] for each in exchanges if each["path"] == "/admin/v2/namespaces/public/recorded"
    )
    async with api_served(tmp_path, topics=_TOPICS) as served:
        policies = (await served.ask("/admin/v2/namespaces/acme/orders")).json
    assert {key: value for key, value in recorded.items() if key not in _OF_THE_NAMESPACE} == policies


async def test_only_those_that_the_client_may_list(tmp_path: Path) -> None:
    def authorize(access: Access) -> Refused | None:
        return Refused("not here") if str(access.namespace) == "acme/bills" else None

    async with api_served(tmp_path, topics=_TOPICS, plugins={"p": PluginOf(authorize=authorize)}) as served:
        assert (await served.ask("/admin/v2/namespaces/acme")).json == ["acme/orders"]
        assert (await served.ask("/admin/v2/tenants")).json == ["acme", "umbrella"]
        assert (await served.ask("/admin/v2/namespaces/acme/bills")).status == 403


async def test_namespaces_come_and_go_with_their_topics(tmp_path: Path) -> None:
    async with api_served(tmp_path, topics=_TOPICS) as served:
        for method in ("PUT", "DELETE"):
            for body in ({}, {"json": {"replication_clusters": ["standalone"]}}):
                said = await served.ask("/admin/v2/namespaces/acme/new", method, **body)
                assert said.status == 501
                assert "create a topic, or delete its topics" in said.json["reason"]


async def test_a_gateway_does_not_know_them(tmp_path: Path) -> None:
    async with api_served(tmp_path, upstream={"service_url": "pulsar://127.0.0.1:1"}) as served:
        for path in ("tenants", "namespaces/acme", "namespaces/acme/orders"):
            said = await served.ask(f"/admin/v2/{path}")
            assert said.status == 501
            assert "ask the web service of a broker" in said.json["reason"]
