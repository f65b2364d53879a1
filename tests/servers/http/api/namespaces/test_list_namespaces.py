"""The list of namespaces: pages, rights of rules and gates, and counts that tell nothing of what plugins hide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from structlog.testing import capture_logs

from broker_core import Access, Refused
from broker_core.names import NamespaceName, TopicName
from tests.support.api_serving import ApiServed, api_served
from tests.support.plugins import PluginOf
from tests.support.ports import free_port
from tests.support.tokens import data_url, der, rsa_key, token

PATH = "/v1/namespaces"


def topics(*names: str) -> dict[str, tuple[int, dict[str, str]]]:
    return {f"persistent://{name}/x": (0, {}) for name in names}


async def names(served: ApiServed, **options: Any) -> list[str]:
    """All pages."""
    found: list[str] = []
    params: dict[str, str] = {"limit": "2"}
    while True:
        said = await served.ask(PATH, params=params, **options)
        assert said.status == 200, said.json
        assert len(said.json["items"]) <= 2
        found += [item["namespace"] for item in said.json["items"]]
        if said.json["next"] is None:
            assert "Link" not in said.headers
            return found
        assert said.headers["Link"] == f'<{PATH}?limit=2&cursor={said.json["next"]}>; rel="next"'
        params["cursor"] = said.json["next"]


async def test_each_has_its_counts_and_its_version(served: ApiServed) -> None:
    assert served.broker.catalog is not None
    served.broker.catalog.create(
        TopicName("persistent", NamespaceName("public", "default"), "__change_events")
    )
    said = await served.ask(PATH)
    (item,) = said.json["items"]
    assert item["namespace"] == "public/default"
    assert item["counts"] == {"persistent": 3, "non_persistent": 1, "all": 4}
    version = served.broker.catalog.version(NamespaceName("public", "default"))
    assert item["version"] == f"{version}.{version.stamp}"
    assert said.json["next"] is None
    one = await served.ask(f"{PATH}/public/default")
    assert one.json == item


@pytest.mark.parametrize("of_kafka", ["a/a1", "zz/z"])
async def test_that_of_a_kafka_cluster_is_among_them(tmp_path: Path, of_kafka: str) -> None:
    every = ["a/a", "a/b", "b/a", "z/z"]
    upstream = {"bootstrap_servers": ["127.0.0.1:1"], "namespace": of_kafka, "ports": str(free_port())}
    kafka = {"listen": "127.0.0.1:0", "upstream": upstream}
    async with api_served(tmp_path, topics=topics(*every), kafka=kafka) as served:
        assert await names(served) == sorted({*every, of_kafka})
        for prefix in ("", "a", "zz/z"):
            params = {"count": "true", "limit": "1"} | ({"prefix": prefix} if prefix else {})
            total = (await served.ask(PATH, params=params)).json["total"]
            assert total == len([each for each in {*every, of_kafka} if each.startswith(prefix)])
        tenant = of_kafka.partition("/")[0]
        assert tenant in (await served.ask("/admin/v2/tenants")).json
        assert of_kafka in (await served.ask(f"/admin/v2/namespaces/{tenant}")).json
        assert (await served.ask(f"/admin/v2/namespaces/{of_kafka}")).json["bundles"]


async def test_pages_have_all_once_in_order(tmp_path: Path) -> None:
    all_names = sorted(["a/b", "a/c", "b/a", "z/z", "a/a"])
    async with api_served(tmp_path, topics=topics(*all_names)) as served:
        assert await names(served) == all_names


async def test_namespaces_are_found_while_their_name_is_typed(tmp_path: Path) -> None:
    found = ("acme/bills", "acme/orders", "beta/orders")
    async with api_served(tmp_path, topics=topics(*found)) as served:
        for query, expected in (
            ({"prefix": "acme/"}, ["acme/bills", "acme/orders"]),
            ({"contains": "oRder"}, ["acme/orders", "beta/orders"]),
            ({"prefix": "b", "contains": "order"}, ["beta/orders"]),
            ({"contains": "nothing"}, []),
        ):
            said = await served.ask(PATH, params={**query, "count": "true", "limit": "1"})
            assert said.json["total"] == len(expected)
            assert [item["namespace"] for item in said.json["items"]] == expected[:1]
            if len(expected) > 1:  # the link has the filter too
                said = await served.ask(said.headers["Link"][1:].partition(">")[0])
                assert [item["namespace"] for item in said.json["items"]] == expected[1:2]
        for wrong in ("contains=", "&".join(["contains=a"] * 9), "prefix=" + "a" * 10_000):
            assert (await served.ask(f"{PATH}?{wrong}")).status == 400


async def test_a_total_is_of_what_a_client_may_list(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "authentication": {"anonymous_role": "anyone"},
        "authorization": {"rules": [{"roles": ["anyone"], "namespaces": ["b/*"], "actions": ["list"]}]},
    }
    spread = sorted(f"{tenant}/{number}" for tenant in "abc" for number in range(50))
    async with api_served(tmp_path, topics=topics(*spread), **tables) as served:
        assert (await served.ask(f"{PATH}?count=true&limit=1")).json["total"] == 50
    plugins = {"gate": PluginOf(authorize=lambda access: None)}
    (tmp_path / "gates").mkdir()
    async with api_served(tmp_path / "gates", topics=topics("a/b"), plugins=plugins) as served:
        assert (await served.ask(f"{PATH}?count=true")).json["total"] is None


async def test_a_cursor_of_nobody_is_refused(served: ApiServed) -> None:
    for wrong in ("?", "YQ", "////", "%C3%A9", "YS9i" * 1000):
        said = await served.ask(PATH, params={"cursor": wrong})
        assert said.status == 400, wrong
        assert "cursor must be" in said.json["detail"]
    assert (await served.ask(PATH, params={"limit": "0"})).status == 400


async def test_rules_are_asked_about_each(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "authentication": {"methods": ["token"], "token": {"key": data_url(der(rsa_key()))}},
        "authorization": {
            "super_roles": ["root"],
            "rules": [{"roles": ["reader"], "namespaces": ["b/*"], "actions": ["list"]}],
        },
    }
    spread = sorted(f"{tenant}/{number}" for tenant in "abc" for number in range(150))
    async with api_served(tmp_path, topics=topics(*spread), **tables) as served:
        headers = {
            role: {"Authorization": f"Bearer {token({'sub': role}).decode()}"}
            for role in ("reader", "root", "nobody")
        }
        first = await served.ask(PATH, params={"limit": "149"}, headers=headers["reader"])
        assert len(first.json["items"]) == 149
        rest = await served.ask(PATH, params={"cursor": first.json["next"]}, headers=headers["reader"])
        found = [item["namespace"] for item in first.json["items"] + rest.json["items"]]
        assert found == [name for name in spread if name[0] == "b"]
        assert rest.json["next"] is None
        assert len((await served.ask(PATH, headers=headers["root"])).json["items"]) == 450
        assert (await served.ask(PATH, headers=headers["nobody"])).json == {"items": [], "next": None}
        assert (await served.ask(PATH)).status == 401


async def test_gates_are_asked_about_each(tmp_path: Path) -> None:
    async def broker_core_authorize(access: Access) -> Refused | None:
        assert access.action == "list"
        return Refused("no") if access.namespace.tenant == "b" else None

    plugins = {"gate": PluginOf(authorize=broker_core_authorize)}
    spread = [f"{tenant}/{number}" for tenant in "abc" for number in range(20)]
    async with api_served(tmp_path, topics=topics(*spread), plugins=plugins) as served:
        assert await names(served) == sorted(name for name in spread if name[0] != "b")


async def test_a_gate_that_fails_is_an_error(tmp_path: Path) -> None:
    async def broker_core_authorize(access: Access) -> None:
        raise RuntimeError("secret")

    async with api_served(tmp_path, plugins={"gate": PluginOf(authorize=broker_core_authorize)}) as served:
        with capture_logs() as logs:
            said = await served.ask(PATH)
        assert (said.status, said.json["cause"]) == (502, "PLUGIN")
        assert "secret" not in said.body.decode()
        assert "public/default" in [line.get("namespace") for line in logs], "for the operator alone"


async def test_where_plugins_hide_topics_nothing_is_counted(tmp_path: Path) -> None:
    def broker_core_visible(topics: Any) -> pa.BooleanArray:
        return pa.array([not name.endswith("bills") for name in topics.to_pylist()])

    async with api_served(tmp_path, plugins={"mask": PluginOf(visible=broker_core_visible)}) as served:
        said = await served.ask(PATH)
        assert said.json["items"] == [
            {
                "namespace": "public/default",
                "version": None,
                "source": "catalog",
                "changed": None,
                "counts": None,
            }
        ]


async def test_without_a_catalogue_there_is_no_list(tmp_path: Path) -> None:
    upstream = {"service_url": "pulsar://127.0.0.1:1"}
    async with api_served(tmp_path, upstream=upstream) as served:
        assert (await served.ask(PATH)).status == 501
