from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from broker_core import Access, Asker, Refused, hookimpl
from broker_core.service.audit import AUDIT_LOGGER
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd

LISTING = f"{NAMESPACE}/topics"
PROBLEM = "application/problem+json"


async def test_what_is_unknown_is_a_problem(served: ApiServed) -> None:
    for method, path, status, detail in (
        ("GET", "/v1/nothing", 404, "there is nothing at /v1/nothing"),
        ("DELETE", LISTING, 405, f"{LISTING} does not take DELETE, only GET, HEAD"),
        ("GET", "/v1/namespaces/a%20b/c/topics", 400, "the tenant 'a b' must be"),
        ("GET", f"{LISTING}?wrong=1", 400, "unknown parameter 'wrong'"),
        ("GET", f"{LISTING}?pattern=(", 400, "pattern"),
    ):
        said = await served.ask(path, method)
        assert (said.status, said.headers["Content-Type"].split(";")[0]) == (status, PROBLEM)
        assert said.json["status"] == status
        assert detail in said.json["detail"]
    # The operator's pages stay as they are.
    assert (await served.ask("/absent")).json == {"error": "there is nothing at /absent"}


async def test_a_head_has_no_body(served: ApiServed) -> None:
    said = await served.ask(LISTING, "HEAD")
    assert (said.status, said.body) == (200, b"")


async def test_a_get_takes_no_body(served: ApiServed) -> None:
    said = await served.ask(LISTING, data=b"x")
    assert (said.status, said.json["cause"]) == (400, "BAD_REQUEST")


PUT = (
    "PUT {path} HTTP/1.1\r\nHost: localhost\r\nExpect: {expected}\r\nContent-Type: {type}\r\n"
    "Content-Length: 2\r\nConnection: {connection}\r\n\r\n{body}"
)


async def test_only_a_body_that_is_read_is_asked_for(served: ApiServed) -> None:
    put = {"path": f"{LISTING}/new", "expected": "100-Continue", "type": "application/json"}
    taken = await served.raw(PUT.format(**put, connection="close", body="{}").encode())
    asked, _, answer = taken.partition(b"\r\n\r\n")
    assert asked == b"HTTP/1.1 100 Continue"
    assert answer.startswith(b"HTTP/1.1 201 ")
    # The server closes the connection: the bytes that come next are a body or a request, nobody knows.
    refused = await served.raw(
        PUT.format(**put | {"type": "text/plain"}, connection="keep-alive", body="").encode()
    )
    assert refused.startswith(b"HTTP/1.1 415 ")
    assert b"\r\nConnection: close\r\n" in refused
    unknown = await served.raw(
        PUT.format(**put | {"expected": "cake"}, connection="close", body="{}").encode()
    )
    assert unknown.startswith(b"HTTP/1.1 417 ")


@pytest.mark.parametrize("path", [LISTING, "/nowhere", "/v1/topics/by-id/x/y", "/admin/v2/persistent/a/b"])
async def test_an_expectation_that_is_no_text(served: ApiServed, path: str) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: \xff\xfe\r\n\r\n"
    said = await served.raw(head % path.encode())
    assert said.startswith(b"HTTP/1.1 417 ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {
            "Origin": "http://evil.example",
            "Host": "evil.example",
        },  # a name that stands for this server's address
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
)
async def test_a_web_page_changes_nothing(served: ApiServed, headers: dict[str, str]) -> None:
    for path in (f"{LISTING}/new", "/admin/v2/persistent/public/default/new"):
        for method in ("PUT", "DELETE"):
            said = await served.ask(path, method, json={}, headers=headers)
            assert said.status == 403
            assert "a web page may change nothing" in said.body.decode()
    said = await served.ask(f"{LISTING}:import", "POST", data=b"", headers=headers)
    assert (said.status, said.json["cause"]) == (403, "NOT_ALLOWED")
    reads = 421 if "Host" in headers else 403 if "cross-site" in headers.values() else 200
    assert (await served.ask(LISTING, headers=headers)).status == reads
    assert (
        await served.ask(f"{LISTING}/new", "PUT", json={}, headers={"Sec-Fetch-Site": "none"})
    ).status == 201


async def test_one_connection_is_one_asker_and_another_is_another(tmp_path: Path) -> None:
    asked: list[Asker] = []

    class Gate:
        @hookimpl
        def broker_core_authorize(self, access: Access) -> Refused | None:
            asked.append(access.asker)
            return None

    async with api_served(tmp_path, plugins={"gate": Gate()}) as served:
        await served.ask(LISTING)
        await served.ask(LISTING)
        async with aiohttp.ClientSession() as other, other.get(served.url + LISTING) as said:
            assert said.status == 200
    first, second, third = (asker.connection for asker in asked)
    assert first is second
    assert third is not first
    assert {asker.transport for asker in asked} == {"http"}


async def test_the_operators_socket_is_a_super_role(tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    tables: dict[str, Any] = {
        "admin": {"socket": str(socket)},
        "authorization": {"mode": "rules", "rules": []},
    }
    async with api_served(tmp_path, **tables) as served:
        assert (await served.ask(LISTING)).status == 403
        connector = aiohttp.UnixConnector(str(socket))
        async with (
            aiohttp.ClientSession(connector=connector) as operator,
            operator.get(f"http://server{LISTING}") as said,
        ):
            assert said.status == 200
            assert len((await said.json())["items"]) == 3


async def test_an_api_that_is_off_is_not_there(tmp_path: Path) -> None:
    async with api_served(tmp_path, http={"api": False}) as served:
        assert (await served.ask(LISTING)).status == 404
        assert (await served.ask("/v1/openapi.json")).status == 404


async def test_a_mistake_is_a_500_without_a_trace(served: ApiServed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret in here")

    monkeypatch.setattr(served.broker.pipeline, "answer_now", lambda _: None)
    monkeypatch.setattr(served.broker.pipeline, "answer", broken)
    with capture_logs() as logs:
        said = await served.ask(LISTING)
    assert (said.status, said.json["cause"]) == (500, "INTERNAL")
    assert b"secret" not in said.body
    assert logs[0]["event"] == "an HTTP request failed"


def told(logs: Any) -> list[tuple[Any, ...]]:
    """What was tried, what became of it, and why, of each line of the audit log."""
    return [
        (line["action"], line.get("target", ""), line["outcome"], line.get("cause") or line.get("status"))
        for line in logs
        if line.get("logger") == AUDIT_LOGGER
    ]


async def test_each_change_has_a_line_in_the_audit_log(tmp_path: Path) -> None:
    users, topics = tmp_path / "users", f"{NAMESPACE}/topics"
    full, admin = "persistent://public/default", "/admin/v2/persistent/public/default"
    write_htpasswd(users, root="geheim", guest="geheim")
    tables: dict[str, Any] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {"super_roles": ["root"]},
    }

    async def ask(path: str, method: str, user: str = "root", password: str = "geheim", **of: Any) -> Any:
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", **of.pop("headers", {})}
        return (await served.ask(path, method, headers=headers, **of)).json

    async with api_served(tmp_path, **tables) as served:
        with capture_logs() as logs:
            made = await ask(f"{topics}/new", "PUT", json={"properties": {"key": "geheim"}})
            (line,) = [line for line in logs if line.get("logger") == AUDIT_LOGGER]
            assert (line["version"], line["role"], line["namespace"]) == (
                made["version"],
                "root",
                "public/default",
            )
            assert line["client_version"].startswith("Python/")
            await ask(f"{topics}/new", "PUT", json={"properties": {"key": "geheim"}})
            await ask(f"{topics}/new", "PUT", "guest", json={})
            await ask(f"{topics}/new", "PUT", "root", "geheimer", json={})  # a stranger has no line
            await ask(f"{topics}/new", "PATCH", json={"partitions": 0.5})
            await ask(f"{topics}/new?force=true", "DELETE")
            await ask(f"/v1/topics/by-id/{made['topic_id']}", "DELETE")
            await ask(f"/v1/topics/by-id/{made['topic_id']}", "DELETE")
            ndjson = {"Content-Type": "application/x-ndjson"}
            for _ in range(2):
                await ask(f"{topics}:import", "POST", data=b'{"name": "a"}', headers=ndjson)
            await ask(f"{admin}/many/partitions", "PUT", json=2)
            await ask("/admin/v2/namespaces/public/default", "PUT", json={})
            await ask(topics, "GET")
            await ask(f"{admin}/bills/properties", "GET")
    assert "geheim" not in str(logs)
    assert told(logs) == [
        ("put_topic", f"{full}/new", "done", 201),
        ("put_topic", f"{full}/new", "unchanged", 200),
        ("put_topic", f"{full}/new", "refused", "DENIED"),
        ("change_topic", f"{full}/new", "refused", "BAD_REQUEST"),
        ("delete_topic", "new", "refused", "BAD_REQUEST"),
        ("delete_topic", f"{full}/new", "done", 204),
        ("delete_topic", made["topic_id"], "refused", "NOT_FOUND"),
        ("import_topics", "", "done", 200),
        ("import_topics", "", "unchanged", 200),
        ("create_topic", f"{full}/many", "done", 204),
        ("create_namespace", "", "refused", "NOT_ALLOWED"),
    ]


async def test_a_client_that_leaves_has_a_line(served: ApiServed) -> None:
    assert served.broker.http_address is not None
    with capture_logs() as logs:
        _, writer = await asyncio.open_connection(*served.broker.http_address)
        head = f"PUT {NAMESPACE}/topics/new HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(head.encode() + b"Content-Length: 100\r\n\r\n{")
        await eventually(lambda: served.sample("http_requests_under_way") == 1)
        writer.transport.abort()
        await eventually(lambda: bool(told(logs)))
    assert told(logs) == [("put_topic", "persistent://public/default/new", "abandoned", None)]
