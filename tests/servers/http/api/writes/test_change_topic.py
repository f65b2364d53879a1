"""PUT, PATCH and DELETE of a topic."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from yarl import URL

from broker_core.access.asker import Access, Refused
from broker_core.catalog import SqliteCatalog, topic_id_text
from broker_core.names import TopicName
from tests.support.api_serving import NAMESPACE, ApiServed, Said, api_served
from tests.support.plugins import PluginOf
from tests.support.tokens import data_url, der, rsa_key, token

TOPICS = f"{NAMESPACE}/topics"
MERGE = {"Content-Type": "application/merge-patch+json"}


async def put(served: ApiServed, name: str, content: object, **headers: str) -> Said:
    return await served.ask(f"{TOPICS}/{name}", "PUT", json=content, headers=headers)


async def patch(served: ApiServed, name: str, content: object, **headers: str) -> Said:
    return await served.ask(f"{TOPICS}/{name}", "PATCH", data=json.dumps(content), headers=MERGE | headers)


async def names(served: ApiServed, **params: str) -> list[str]:
    said = await served.ask(TOPICS, params={"mode": "all"} | params)
    return sorted(item.rpartition("/")[2] for item in said.json["items"])


def content(said: Said) -> tuple[int, int, dict[str, str]]:
    return said.status, said.json["partitions"], said.json["properties"]


async def test_a_topic_is_made_and_listed_at_once(served: ApiServed) -> None:
    made = await put(served, "new", {"properties": {"region": "eu"}})
    assert content(made) == (201, 0, {"region": "eu"})
    assert made.headers["Location"] == f"{TOPICS}/new"
    assert made.json["name"] == "persistent://public/default/new"
    assert made.json["version"] == made.headers["Namespace-Version"]
    assert "new" in await names(served)
    assert await names(served, property="region=eu") == ["new", "orders-partition-0", "orders-partition-1"]
    again = await put(served, "new", {"properties": {"region": "eu"}, "partitions": 0})
    assert content(again) == (200, 0, {"region": "eu"})
    assert "Location" not in again.headers
    assert (again.headers["ETag"], again.json["version"]) == (made.headers["ETag"], made.json["version"])


async def test_a_whole_number_may_be_written_with_a_point(served: ApiServed) -> None:
    assert content(await put(served, "new", {"partitions": 2.0})) == (201, 2, {})
    assert content(await patch(served, "new", {"partitions": 3.0})) == (200, 3, {})


async def test_names_are_local_or_full_and_percent_encoded(served: ApiServed) -> None:
    full = "non-persistent%3A%2F%2Fpublic%2Fdefault%2F%C3%A4%20%25"
    made = await put(served, full, {"partitions": 2})
    assert made.json["name"] == "non-persistent://public/default/ä %"
    assert made.headers["Location"] == f"{TOPICS}/{full}"
    assert (await served.ask(made.headers["Location"], "DELETE")).status == 204
    for wrong in ("persistent%3A%2F%2Fother%2Fns%2Fx", "a%2Fb", "%00"):
        said = await put(served, wrong, {})
        assert (said.status, said.json["cause"]) == (400, "NAME")
    for wrong in ("%FF", "%C3", "%ED%A0%80"):
        url = URL(f"{served.url}{TOPICS}/{wrong}", encoded=True)
        async with served.session.put(url, json={}) as answer:
            assert (answer.status, (await answer.json(content_type=None))["detail"]) == (
                400,
                "the path is not in UTF-8",
            )


async def test_a_topic_of_the_system_which_nobody_may_list_is_its_name_alone(served: ApiServed) -> None:
    made = await put(served, "__change_events", {})
    assert made.status == 201
    assert {key for key, value in made.json.items() if value is not None} == {"name"}


async def test_another_content_needs_to_know_what_it_replaces(served: ApiServed) -> None:
    first = await put(served, "t", {"properties": {"k": "1"}})
    refused = await put(served, "t", {"properties": {"k": "2"}})
    assert (refused.status, refused.headers["Content-Type"].partition(";")[0]) == (
        409,
        "application/problem+json",
    )
    assert "with other partitions, properties or configs" in refused.json["detail"]
    second = await put(served, "t", {"properties": {"k": "2"}}, **{"If-Match": first.headers["ETag"]})
    assert content(second) == (200, 0, {"k": "2"})
    assert second.json["topic_id"] == first.json["topic_id"]
    stale = await put(served, "t", {"properties": {"k": "3"}}, **{"If-Match": first.headers["ETag"]})
    assert stale.status == 412
    assert second.headers["ETag"] in stale.json["detail"]
    assert content(await put(served, "t", {}, **{"If-Match": "*"})) == (200, 0, {})
    assert (await put(served, "t", {}, **{"If-None-Match": "*"})).status == 412
    assert (await put(served, "other", {}, **{"If-None-Match": "*"})).status == 201
    assert (await put(served, "nowhere", {}, **{"If-Match": "*"})).status == 412
    assert (await put(served, "t", {}, **{"If-Match": "no tag"})).status == 400
    made = await put(served, "lines", {})
    lines = [("If-Match", '"other"'), ("If-Match", made.headers["ETag"])]
    assert (await served.ask(f"{TOPICS}/lines", "DELETE", headers=lines)).status == 204


async def test_a_topic_grows_and_a_partition_comes_back(served: ApiServed) -> None:
    content_of = {"partitions": 3, "properties": {"region": "eu"}}
    grown = await put(served, "orders", content_of, **{"If-Match": "*"})
    assert content(grown) == (200, 3, {"region": "eu"})
    assert (await patch(served, "orders", {"partitions": 1})).status == 409
    assert (await served.ask(f"{TOPICS}/orders-partition-1", "DELETE")).status == 204
    made = await put(served, "orders-partition-1", {}, **{"If-None-Match": "*"})
    assert (made.status, made.headers["Location"]) == (201, f"{TOPICS}/orders-partition-1")
    assert (await put(served, "orders-partition-1", {})).status == 200


async def test_properties_and_configs_are_merged(served: ApiServed) -> None:
    configs = {"retention.ms": "5", "cleanup.policy": "compact"}
    made = await put(served, "t", {"properties": {"kept": "1", "gone": "3"}, "configs": configs})
    assert (made.status, made.json["configs"], made.json["replication"]) == (201, configs, None)
    less = {"properties": {"gone": None, "new": "5"}, "configs": {"retention.ms": None, "segment.ms": "7"}}
    merged = await patch(served, "t", less)
    assert content(merged) == (200, 0, {"kept": "1", "new": "5"})
    assert merged.json["configs"] == {"cleanup.policy": "compact", "segment.ms": "7"}
    assert merged.headers["ETag"] != made.headers["ETag"]
    assert content(await patch(served, "t", {})) == content(merged)
    assert (await patch(served, "t", {}, **{"If-Match": '"stale"'})).status == 412
    none = await served.ask(f"{TOPICS}/t", "PATCH", json={"properties": None, "configs": None})
    assert (none.json["properties"], none.json["configs"]) == ({}, {})
    assert (await patch(served, "nowhere", {}, **{"If-Match": '"x"'})).status == 404
    wrongs: list[object] = [{"no.such": "1"}, {"retention.ms": 5}, {"segment.ms": None}, [], None]
    for wrong in wrongs:
        assert (await put(served, "t", {"configs": wrong}, **{"If-Match": "*"})).status == 400, wrong


async def test_a_topic_is_deleted(served: ApiServed) -> None:
    made = await put(served, "t", {"partitions": 2})
    assert (await served.ask(f"{TOPICS}/t", "DELETE", headers={"If-Match": '"stale"'})).status == 412
    gone = await served.ask(f"{TOPICS}/t", "DELETE", headers={"If-Match": made.headers["ETag"]})
    assert (gone.status, gone.body) == (204, b"")
    changes = await served.ask(f"{NAMESPACE}/changes", params={"since": made.json["version"]})
    assert (len(changes.json["changes"]), changes.json["version"]) == (1, gone.headers["Namespace-Version"])
    assert "t-partition-0" not in await names(served)
    missing = await served.ask(f"{TOPICS}/t", "DELETE")
    assert (missing.status, missing.json["cause"]) == (404, "NOT_FOUND")
    new = await put(served, "t", {"partitions": 2})
    assert new.headers["ETag"] != made.headers["ETag"]


@pytest.mark.parametrize(
    ("method", "body", "said"),
    [
        ("PUT", "[]", "must be an object"),
        ("PUT", "{", "no JSON"),
        ("PUT", '{"partitions": 3, "partitions": 4}', "the key 'partitions' is there twice"),
        ("PUT", '{"partition": 3}', "unknown member 'partition'"),
        ("PUT", '{"partitions": "3"}', "partitions must be a whole number"),
        ("PUT", '{"partitions": true}', "partitions must be a whole number"),
        ("PUT", '{"partitions": -1}', "0 to 1000000 partitions, not -1"),
        ("PUT", '{"partitions": 1000001}', "0 to 1000000 partitions"),
        ("PUT", '{"properties": null}', "properties must be an object"),
        ("PUT", '{"properties": []}', "properties must be an object"),
        ("PUT", '{"properties": {"k": 1}}', "must be a string, not a number"),
        ("PUT", '{"properties": {"k": null}}', "must be a string, not null"),
        ("PUT", '{"properties": {"k": "\\ud800"}}', "lone surrogate"),
        ("PUT", json.dumps({"properties": {"k": "v" * 70_000}}), "at most 65536"),
        ("PATCH", '{"partitions": null}', "partitions must be a whole number"),
        ("PATCH", '{"properties": ["k"]}', "properties must be an object"),
        ("PATCH", '{"properties": {"k": ["v"]}}', "must be a string, not a list"),
        ("PATCH", json.dumps({"properties": {"k": "v" * 70_000}}), "at most 65536"),
    ],
)
async def test_what_no_topic_can_be(served: ApiServed, method: str, body: str, said: str) -> None:
    path = f"{TOPICS}/bills"
    answer = await served.ask(path, method, data=body, headers={"Content-Type": "application/json"})
    assert (answer.status, answer.json["cause"]) == (400, "BAD_REQUEST")
    assert said in answer.json["detail"]
    assert served.broker.catalog is not None
    assert served.broker.catalog.committed == 0


async def test_bodies_have_their_type_and_size(served: ApiServed) -> None:
    for headers in (
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ):
        said = await served.ask(f"{TOPICS}/t", "PUT", data="{}", headers=headers)
        assert (said.status, said.json["cause"]) == (415, "BAD_REQUEST")
    large = json.dumps({"properties": {"k": "v" * 600_000}})
    said = await served.ask(f"{TOPICS}/t", "PUT", data=large, headers={"Content-Type": "application/json"})
    assert said.status == 413
    assert (await served.ask(f"{TOPICS}/bills", "DELETE", data="{}")).status == 400


async def test_a_change_reads_nothing_that_its_client_may_not_list(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"namespaces": ["*"]}
    tables: dict[str, Any] = {
        "authentication": {"methods": ["token"], "token": {"key": data_url(der(rsa_key()))}},
        "authorization": {
            "rules": [
                rule | {"roles": ["changes"], "actions": ["admin"]},
                rule | {"roles": ["both"], "actions": ["admin", "list"]},
                rule | {"roles": ["both"], "actions": ["list"], "topics": ["bi*"], "effect": "deny"},
            ]
        },
    }

    async with api_served(tmp_path, **tables) as served:
        for role, name, shows in (
            ("changes", "bills", False),
            ("changes", "new", False),
            ("both", "bills", False),
            ("both", "orders", True),
            ("both", "new", True),
        ):
            auth = {"Authorization": f"Bearer {token({'sub': role}).decode()}"}
            shown = (await served.ask(f"{TOPICS}/{name}", headers=auth)).status == 200
            assert shown == (shows and name != "new")
            denied = served.sample("denials_total", action="list", by="rules")
            if name == "new":
                said = await put(served, f"{name}-{role}", {"properties": {"k": "v"}}, **auth)
                assert said.status == 201
            else:
                said = await patch(served, name, {}, **auth)
                assert said.status == 200
            assert {"ETag", "Namespace-Version"} <= said.headers.keys()
            assert served.sample("denials_total", action="list", by="rules") == denied
            stale = await patch(
                served, said.json["name"].rpartition("/")[2], {}, **auth, **{"If-Match": '"x"'}
            )
            assert stale.status == 412
            with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
                record = catalog.topic(TopicName.parse(said.json["name"]))
            assert record is not None
            topic_id = topic_id_text(record.topic_id)
            assert topic_id not in f"{said.headers} {stale.headers} {stale.json}"
            known = {key for key, value in said.json.items() if value is not None}
            assert said.json.keys() >= {"topic_id", "properties", "configs", "version"}
            assert known == {"name"} if not shows else known > {"name", "topic_id", "properties", "configs"}


@pytest.mark.parametrize("shows", [True, False])
async def test_a_refusal_quotes_what_a_topic_has_for_clients_that_may_list_it(
    tmp_path: Path, shows: bool
) -> None:
    rule = {"roles": ["anyone"], "namespaces": ["*"], "actions": ["admin", "list"] if shows else ["admin"]}
    tables: dict[str, Any] = {
        "authentication": {"anonymous_role": "anyone"},
        "authorization": {"mode": "rules", "rules": [rule]},
    }
    async with api_served(tmp_path, **tables) as served:
        made = await put(served, "t", {"partitions": 47, "configs": {"min.compaction.lag.ms": "4711"}})
        assert made.status == 201
        for said, status, text in (
            (await patch(served, "t", {"partitions": 3}), 409, "there may be more of them, not"),
            (await put(served, "t-partition-99", {}), 409, "t-partition-99"),
            (await patch(served, "t", {"configs": {"max.compaction.lag.ms": "5"}}), 400, "onfig"),
            (await patch(served, "t", {"configs": {"retention.ms": "x"}}), 400, "Invalid value x"),
        ):
            assert said.status == status
            assert text in said.json["detail"]
            assert ("47" in said.json["detail"]) is (shows and text != "Invalid value x")
        admin = "/admin/v2/persistent/public/default/t/partitions"
        said = await served.ask(admin, "POST", json=3)
        now = " 47" if shows else ""
        reason = f"Desired partitions 3 can't be less than the current partitions{now}."
        assert (said.status, said.json["reason"]) == (422, reason)


async def test_gates_are_asked_once_and_before_the_body(tmp_path: Path) -> None:
    asked: list[str] = []

    def broker_core_authorize(access: Access) -> Refused | None:
        if access.action == "admin" and access.topic is not None:
            asked.append(access.topic.local)
        return Refused("locked") if access.topic is not None and access.topic.local == "locked" else None

    admin = "/admin/v2/persistent/public/default"
    async with api_served(tmp_path, plugins={"gate": PluginOf(authorize=broker_core_authorize)}) as served:
        made = await put(served, "a", {})
        assert (await patch(served, "a", {"properties": {"k": "v"}})).status == 200
        assert (await served.ask(f"/v1/topics/by-id/{made.json['topic_id']}", "DELETE")).status == 204
        assert (await served.ask(f"{admin}/b/partitions", "PUT", json=2)).status == 204
        assert (await served.ask(f"{TOPICS}/b", "DELETE")).status == 204
        assert asked == ["a", "a", "a", "b", "b"]
        assert served.broker.http_address is not None
        for path in (f"{TOPICS}/locked", f"{admin}/locked/properties"):
            reader, writer = await asyncio.open_connection(*served.broker.http_address)
            head = f"PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(head.encode() + b"Content-Length: 100\r\n\r\n")  # and no body
            assert (await reader.readline()).split()[1] == b"403"
            writer.close()
        assert asked[5:] == ["locked", "locked"]


async def test_before_a_cluster_there_is_nothing_to_write(tmp_path: Path) -> None:
    upstream = {"service_url": "pulsar://127.0.0.1:1"}
    async with api_served(tmp_path, upstream=upstream) as served:
        for said in (
            await put(served, "t", {}),
            await patch(served, "t", {}),
            await served.ask(f"{TOPICS}/t", "DELETE"),
            await served.ask(
                f"{TOPICS}:import", "POST", data="x", headers={"Content-Type": "application/x-ndjson"}
            ),
        ):
            assert (said.status, said.json["cause"]) == (501, "NOT_ALLOWED")


def _hides_bills(topics: pa.LargeStringArray) -> pa.BooleanArray:
    return pc.invert(pc.match_substring(topics, "bills"))


def _refuses_lists(access: Access) -> Refused | None:
    return Refused("no") if access.action == "list" else None


@pytest.mark.parametrize("plugin", [PluginOf(visible=_hides_bills), PluginOf(authorize=_refuses_lists)])
async def test_a_change_reads_nothing_of_a_topic_that_plugins_hide(tmp_path: Path, plugin: PluginOf) -> None:
    """The rules of the server allow the topic to be listed, and the catalogue alone would show it."""
    async with api_served(tmp_path, plugins={"p": plugin}) as served:
        said = await patch(served, "bills", {})
        assert said.status == 200
        assert {key for key, value in said.json.items() if value is not None} == {"name"}
