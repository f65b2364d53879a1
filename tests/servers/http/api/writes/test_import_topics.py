"""POST of many topics."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core import Access, Refused
from broker_core.service import topic_imports
from broker_core.service.topic_imports import TopicImports
from tests.support.api_serving import NAMESPACE, ApiServed, Said, api_served
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf

IMPORT = f"{NAMESPACE}/topics:import"
NDJSON = {"Content-Type": "application/x-ndjson"}


def lines(*topics: object) -> bytes:
    return b"".join(json.dumps(topic).encode() + b"\n" for topic in topics)


async def bring(served: ApiServed, body: Any, headers: dict[str, str] | None = None, **params: str) -> Said:
    return await served.ask(IMPORT, "POST", data=body, headers=NDJSON | (headers or {}), params=params)


async def names(served: ApiServed) -> list[str]:
    said = await served.ask(f"{NAMESPACE}/topics", params={"mode": "all"})
    return sorted(item.rpartition("/")[2] for item in said.json["items"])


def imports_of(served: ApiServed) -> TopicImports:
    core = served.broker._core
    assert core is not None
    assert core.changes is not None
    return core.changes.imports


THERE = ["bills", "orders-partition-0", "orders-partition-1", "ticks"]


async def test_topics_are_brought_and_listed_at_once(served: ApiServed) -> None:
    body = lines(
        {"name": "new", "properties": {"region": "eu"}},
        {"name": "orders", "partitions": 3},
        {"name": "persistent://public/default/bills"},
        {"name": "new"},
    )
    said = await bring(served, body)
    assert said.status == 200
    version = said.json.pop("version")
    assert said.json == {
        "lines": 4,
        "topics": 3,
        "created": 1,
        "updated": 1,
        "unchanged": 1,
        "deleted": 0,
        "names_lost": 0,
        "renewed_ids": 0,
        "repeats": 1,
    }
    assert said.headers["Namespace-Version"] == version
    assert await names(served) == sorted([*THERE, "new", "orders-partition-2"])
    again = await bring(served, body)
    assert (again.json["unchanged"], again.json["version"]) == (3, version)


async def test_ids_configs_and_replicas_come_along(served: ApiServed) -> None:
    given = {"topic_id": "pLW3lPqvQYyE8maO_j3eRw", "configs": {"retention.ms": "5"}, "replication": 3}
    assert (await bring(served, lines({"name": "new"} | given))).json["renewed_ids"] == 0
    new = (await served.ask(f"{NAMESPACE}/topics/new")).json
    assert {name: new[name] for name in given} == given
    said = await bring(served, lines({"name": "other", "topic_id": given["topic_id"]}))
    assert (said.json["created"], said.json["renewed_ids"]) == (1, 1)


async def test_a_wrong_line_is_told_and_nothing_is_changed(served: ApiServed) -> None:
    for body, line, said in (
        (lines({"name": "new"}, {"name": "a/b"}), 2, "a/b"),
        (lines({"name": "new"}, {"name": ""}), 2, "empty"),
        (lines({"name": "new"}) + b"{\n", 2, "not JSON"),
        (lines({"name": "new"}) + b"\xff\n", 2, "UTF-8"),
        (b"new\n", 1, "not a JSON object"),
        (b"  new\n", 1, "not a JSON object"),
        (b"\n" + lines({"name": "new"}), 1, "it is empty"),
        (b" \t\r\n" + lines({"name": "new"}), 1, "it is empty"),
        (b" ", 1, "it is empty"),
        (b"\xef\xbb\xbf" + lines({"name": "new"}), 1, "byte order mark"),
        (lines({"name": "new", "propertys": {}}), 1, 'did you mean "properties"'),
    ):
        refused = await bring(served, body)
        assert (refused.status, refused.json["line"]) == (400, line)
        assert said in refused.json["detail"]
    pair = await bring(served, lines({"name": "bills-partition-0", "properties": {"region": "other"}}))
    assert pair.status == 409
    assert await names(served) == THERE


async def test_white_space_before_the_first_object_is_none_of_it(served: ApiServed) -> None:
    said = await bring(served, b" \t\r" + lines({"name": "new"}) + b" " + lines({"name": "new2"}))
    assert (said.status, said.json["created"]) == (200, 2)
    refused = await bring(served, b" " + lines({"name": "new"}) + b"{\n")
    assert (refused.status, refused.json["line"]) == (400, 2)


async def test_exact_is_guarded(served: ApiServed) -> None:
    many = lines(*({"name": f"t{number}"} for number in range(200)))
    assert (await bring(served, many)).status == 200
    few = lines({"name": "t0"}, {"name": "new"})
    refused = await bring(served, few, exact="true")
    assert refused.status == 409
    assert (refused.json["there"], refused.json["deletions"]) == (204, 203)
    assert "max_deletions=203 allows it" in refused.json["detail"]
    assert (await bring(served, few, exact="true", max_deletions="202")).status == 409
    assert len(await names(served)) == 204
    done = await bring(served, few, exact="true", max_deletions="203")
    assert (done.status, done.json["deleted"], done.json["names_lost"]) == (200, 202, 203)
    assert await names(served) == ["new", "t0"]
    assert (await bring(served, few, max_deletions="1")).status == 400
    assert (await bring(served, few, exact="yes")).status == 400


async def test_an_empty_body_empties_a_namespace_but_not_by_mistake(served: ApiServed) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        return
        yield b""

    refused = await bring(served, nothing(), exact="true")
    assert (refused.status, refused.json["deletions"]) == (409, 4)
    assert (await bring(served, b"", exact="true")).status == 409
    everything = {"exact": "true", "max_deletions": "4"}
    untyped = await served.ask(IMPORT, "POST", params=everything)
    assert untyped.status == 415, "a web page of somebody else may send this"
    assert await names(served) == THERE
    assert (await bring(served, b"")).json["lines"] == 0
    assert (await bring(served, b"", exact="true", max_deletions="4")).json["names_lost"] == 4
    assert await names(served) == []


async def test_a_body_may_be_gzip(served: ApiServed) -> None:
    zipped = {"Content-Encoding": "gzip"}
    whole = gzip.compress(lines({"name": "new"}))
    assert (await bring(served, whole + gzip.compress(lines({"name": "new2"})), zipped)).json["created"] == 2
    for body, said in ((whole[:-4], "cut short"), (whole[:-9], "cut short"), (b"{}{}{}{}{}{}", "not gzip")):
        refused = await bring(served, body, zipped)
        assert (refused.status, refused.json["cause"]) == (400, "BAD_REQUEST")
        assert said in refused.json["detail"]
    assert (await bring(served, b"{}", {"Content-Encoding": "br"})).status == 415
    assert (await bring(served, b"{}", {"Content-Type": "application/json"})).status == 415


async def test_a_body_is_bounded_decompressed_too(served: ApiServed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.service.topic_imports.MOST_BYTES", 5_000_000)
    bomb = gzip.compress(b"{" + b" " * 50_000_000)
    refused = await bring(served, bomb, {"Content-Encoding": "gzip"})
    assert (refused.status, refused.json["cause"]) == (413, "TOO_LARGE")


@pytest.mark.parametrize("framing", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
async def test_a_client_that_goes_changes_nothing(served: ApiServed, framing: bytes) -> None:
    assert served.broker.http_address is not None
    _, writer = await asyncio.open_connection(*served.broker.http_address)
    line = lines({"name": "new"})
    part = line if b"Length" in framing else b"%x\r\n%b\r\n" % (len(line), line)
    writer.write(b"POST %b?exact=true HTTP/1.1\r\nHost: x\r\n" % IMPORT.encode())
    writer.write(b"Content-Type: application/x-ndjson\r\n%b\r\n\r\n%b" % (framing, part))
    await writer.drain()
    imports = imports_of(served)
    await eventually(lambda: imports.under_way == 1)
    writer.close()
    await writer.wait_closed()
    await eventually(lambda: imports.under_way == 0)
    assert await names(served) == THERE
    assert (await bring(served, line)).json["created"] == 1


async def test_imports_take_turns_and_so_many_wait(served: ApiServed) -> None:
    begun = asyncio.Event()
    on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield lines({"name": "slow"})
        begun.set()
        await on.wait()

    under_way = [asyncio.create_task(bring(served, slow())) for _ in range(4)]
    await begun.wait()
    imports = imports_of(served)
    await eventually(lambda: imports.under_way == 4)
    refused = await bring(served, lines({"name": "new"}))
    assert (refused.status, refused.json["cause"], refused.headers["Retry-After"]) == (503, "QUEUE", "1")
    assert (await served.ask(f"{NAMESPACE}/topics/other", "PUT", json={})).status == 201
    on.set()
    assert sorted([each.json["created"] for each in await asyncio.gather(*under_way)]) == [0, 0, 0, 1]
    assert (await bring(served, lines({"name": "new"}))).json["created"] == 1


def gate(asked: list[str | None]) -> PluginOf:
    async def broker_core_authorize(access: Access) -> Refused | None:
        if access.action == "admin":
            asked.append(None if access.topic is None else access.topic.local)
        return Refused("locked") if access.topic and access.topic.local in {"locked", "bills"} else None

    return PluginOf(authorize=broker_core_authorize)


async def test_gates_are_asked_about_each_topic(tmp_path: Path) -> None:
    asked: list[str | None] = []
    async with api_served(tmp_path, plugins={"gate": gate(asked)}) as served:
        said = await bring(served, lines({"name": "new"}, {"name": "locked"}, {"name": "orders"}))
        assert (said.status, said.json["detail"], said.json["cause"]) == (403, "locked", "DENIED")
        assert await names(served) == THERE
        asked.clear()
        assert (await bring(served, lines({"name": "new"}, {"name": "orders-partition-2"}))).status == 200
        assert (asked[0], set(asked[1:])) == (None, {"new", "orders"})
        # Of an exact one about those that it deletes: "bills" is one.
        kept = lines({"name": "new"}, {"name": "orders", "partitions": 3})
        said = await bring(served, kept, exact="true", max_deletions="2")
        assert (said.status, said.json["detail"]) == (403, "locked")
        kept += lines({"name": "bills"})
        assert (await bring(served, kept, exact="true", max_deletions="2")).status == 403
        assert len(await names(served)) == len(THERE) + 2


async def test_gates_are_not_asked_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "MOST_ASKED", 3)
    async with api_served(tmp_path, plugins={"gate": gate([])}) as served:
        assert (await bring(served, lines(*({"name": name} for name in "abc")))).status == 200
        said = await bring(served, lines(*({"name": name} for name in "defg")))
        assert (said.status, said.json["cause"]) == (413, "TOO_LARGE")
        assert "import several parts" in said.json["detail"]
        assert len(await names(served)) == len(THERE) + 3


async def test_a_gate_that_fails_imports_nothing(tmp_path: Path) -> None:
    async def broker_core_authorize(access: Access) -> None:
        if access.topic is not None:
            raise OSError

    plugins = {"gate": PluginOf(authorize=broker_core_authorize)}
    async with api_served(tmp_path, plugins=plugins) as served:
        said = await bring(served, lines({"name": "new"}))
        assert (said.status, said.json["cause"]) == (502, "PLUGIN")
        assert await names(served) == THERE
