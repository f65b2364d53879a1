"""Each request that wants to change something has one line in the audit log."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.audit_log import AUDIT_LOGGER
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd

TOPICS = f"{NAMESPACE}/topics"
ADMIN = "/admin/v2/persistent/public/default"
FULL = "persistent://public/default"
NDJSON = {"Content-Type": "application/x-ndjson"}

Lines = list[dict[str, Any]]


@pytest.fixture
def lines() -> Iterator[Lines]:
    with capture_logs() as logs:
        yield logs  # type: ignore[misc]


def told(lines: Lines) -> list[tuple[Any, ...]]:
    """What was tried, what became of it, and why, of each line; there are none of them after that."""
    audited = [line for line in lines if line.get("logger") == AUDIT_LOGGER]
    lines.clear()
    return [
        (line["action"], line.get("target", ""), line["outcome"], line.get("cause") or line["status"])
        for line in audited
    ]


async def test_changes_of_one_topic(served: ApiServed, lines: Lines) -> None:
    made = await served.ask(f"{TOPICS}/new", "PUT", json={"properties": {"key": "geheim"}})
    (line,) = [line for line in lines if line.get("logger") == AUDIT_LOGGER]
    assert line["version"] == made.json["version"]
    assert (line["namespace"], line["status"]) == ("public/default", 201)
    assert (line["transport"], line["address"].partition(":")[0]) == ("http", "127.0.0.1")
    assert line["client_version"].startswith("Python/")
    assert "geheim" not in str(lines)
    assert told(lines) == [("put_topic", f"{FULL}/new", "done", 201)]
    await served.ask(f"{TOPICS}/new", "PUT", json={"properties": {"key": "geheim"}})
    await served.ask(f"{TOPICS}/new", "PATCH", json={"partitions": 0.5})
    await served.ask(f"{TOPICS}/new", "PATCH", json={"properties": {"key": None}})
    await served.ask(f"{TOPICS}/new", "DELETE", headers={"If-Match": '"other"'})
    await served.ask(f"{TOPICS}/new?force=true", "DELETE")
    await served.ask(f"{TOPICS}/orders-partition-1", "DELETE")
    await served.ask(f"{TOPICS}/nowhere", "DELETE")
    by_id = await served.ask(f"/v1/topics/by-id/{made.json['topic_id']}", "DELETE")
    again = await served.ask(f"/v1/topics/by-id/{made.json['topic_id']}", "DELETE")
    assert (by_id.status, again.status) == (204, 404)
    told_of = [line.get("namespace") for line in lines if line.get("logger") == AUDIT_LOGGER][-2:]
    assert told_of == ["public/default", None], "of an id that nothing has, no namespace is known"
    assert told(lines) == [
        ("put_topic", f"{FULL}/new", "unchanged", 200),
        ("change_topic", f"{FULL}/new", "refused", "BAD_REQUEST"),
        ("change_topic", f"{FULL}/new", "done", 200),
        ("delete_topic", f"{FULL}/new", "refused", "PRECONDITION"),
        ("delete_topic", "new", "refused", "BAD_REQUEST"),
        ("delete_topic", f"{FULL}/orders-partition-1", "done", 204),
        ("delete_topic", f"{FULL}/nowhere", "refused", "NOT_FOUND"),
        ("delete_topic", f"{FULL}/new", "done", 204),
        ("delete_topic", made.json["topic_id"], "refused", "NOT_FOUND"),
    ]


async def test_imports(served: ApiServed, lines: Lines) -> None:
    body = b'{"name": "a"}\n{"name": "orders", "partitions": 3}\n'
    for options in ("", "", "?exact=true&max_deletions=9", "?exact=true"):
        await served.ask(f"{TOPICS}:import{options}", "POST", data=body, headers=NDJSON)
    counts = [[line.get(name) for name in ("created", "updated", "deleted")] for line in lines]
    assert counts == [[1, 1, 0], [0, 0, 0], [0, 0, 2], [0, 0, 0]]
    assert told(lines) == [
        ("import_topics", "", "done", 200),
        ("import_topics", "", "unchanged", 200),
        ("import_topics", "", "done", 200),
        ("import_topics", "", "unchanged", 200),
    ]


async def test_what_pulsar_admin_changes(served: ApiServed, lines: Lines) -> None:
    for method, path, body in (
        ("PUT", f"{ADMIN}/new", "{}"),
        ("PUT", f"{ADMIN}/new", "{}"),
        ("PUT", f"{ADMIN}/many/partitions", "2"),
        ("POST", f"{ADMIN}/many/partitions", "3"),
        ("PUT", f"{ADMIN}/new/properties", '{"key": "geheim"}'),
        ("DELETE", f"{ADMIN}/new/properties?key=key", None),
        ("DELETE", f"{ADMIN}/new", None),
        ("DELETE", f"{ADMIN}/many/partitions", None),
        ("PUT", "/admin/v2/namespaces/public/default", "{}"),
    ):
        await served.ask(path, method, data=body, headers={"Content-Type": "application/json"})
    assert "geheim" not in str(lines)
    done = told(lines)
    assert done.pop(1)[:3] == ("create_topic", f"{FULL}/new", "refused")
    assert done == [
        ("create_topic", f"{FULL}/new", "done", 204),
        ("create_topic", f"{FULL}/many", "done", 204),
        ("add_partitions", f"{FULL}/many", "done", 204),
        ("change_topic", f"{FULL}/new", "done", 204),
        ("change_topic", f"{FULL}/new", "done", 204),
        ("delete_topic", f"{FULL}/new", "done", 204),
        ("delete_topic", f"{FULL}/many", "done", 204),
        ("create_namespace", "", "refused", "NOT_ALLOWED"),
    ]


async def test_what_only_reads_has_no_line(served: ApiServed, lines: Lines) -> None:
    await served.ask(TOPICS)
    await served.ask(f"{NAMESPACE}/explain", "POST", json={})
    await served.ask(f"{TOPICS}/bills")
    await served.ask(f"{ADMIN}/bills/properties")
    assert told(lines) == []


async def test_the_role_is_told_and_no_password(tmp_path: Path, lines: Lines) -> None:
    users = tmp_path / "users"
    write_htpasswd(users, root="geheim", guest="geheim")
    tables: dict[str, Any] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {"super_roles": ["root"]},
    }
    async with api_served(tmp_path, **tables) as served:
        for user, password in (("root", "geheim"), ("guest", "geheim"), ("root", "geheimer")):
            credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers = {"Authorization": f"Basic {credentials}"}
            await served.ask(f"{TOPICS}/new", "PUT", json={}, headers=headers)
        await served.ask(f"{TOPICS}/new", "PUT", json={})
    roles = [line["role"] for line in lines if line.get("logger") == AUDIT_LOGGER]
    assert roles == ["root", "guest"], "who could not be authenticated has no line here"
    assert "geheim" not in str(lines)
    assert told(lines) == [
        ("put_topic", f"{FULL}/new", "done", 201),
        ("put_topic", f"{FULL}/new", "refused", "DENIED"),
    ]


async def test_a_client_that_leaves(served: ApiServed, lines: Lines) -> None:
    def audited() -> bool:
        return any(line.get("logger") == AUDIT_LOGGER for line in lines)

    assert served.broker.http_address is not None
    _, writer = await asyncio.open_connection(*served.broker.http_address)
    head = f"PUT {TOPICS}/new HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    writer.write(head.encode() + b"{")
    await eventually(lambda: served.sample("http_requests_under_way") == 1)
    writer.transport.abort()
    await eventually(audited)
    (line,) = (line for line in lines if line.get("logger") == AUDIT_LOGGER)
    assert (line["outcome"], line["target"], "status" in line) == ("abandoned", f"{FULL}/new", False)
