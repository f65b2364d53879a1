"""POST of many topics."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.service.topic_imports import TopicImports
from tests.support.api_serving import NAMESPACE, ApiServed, Said
from tests.support.eventually import eventually

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
    assert core.changes.imports is not None
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


async def test_a_wrong_line_is_told_and_nothing_is_changed(served: ApiServed) -> None:
    for body, line, said in (
        (lines({"name": "new"}, {"name": "a/b"}), 2, "a/b"),
        (lines({"name": "new"}) + b"{\n", 2, "not JSON"),
        (lines({"name": "new"}) + b"\xff\n", 2, "UTF-8"),
        (b"new\n", 1, "not a JSON object"),
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


async def test_a_body_may_be_gzip_and_nothing_else(served: ApiServed) -> None:
    zipped = {"Content-Encoding": "gzip"}
    assert (await bring(served, gzip.compress(lines({"name": "new"})), zipped)).json["created"] == 1
    refused = await bring(served, b"{}{}{}{}{}{}", zipped)
    assert (refused.status, refused.json["cause"]) == (400, "BAD_REQUEST")
    for headers in ({"Content-Encoding": "br"}, {"Content-Type": "application/json"}):
        assert (await bring(served, b"{}", headers)).status == 415


async def test_a_body_is_bounded(served: ApiServed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.service.topic_imports.MOST_BYTES", 10)
    refused = await bring(served, lines({"name": "new"}))
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
