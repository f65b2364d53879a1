"""LISTEN/NOTIFY at a real server: hints, lost connections, and invalid payloads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.names import NamespaceName
from broker_core_postgres.changes.listen_notify import TopicsListener, parse_hint
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.postgres_server import Database

_LONG = 60.0


@pytest.fixture
async def admin(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect()
    yield connection
    await connection.close()


async def add(admin: Any, namespace: str, name: str) -> None:
    await admin.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ($1, $2)", namespace, name
    )


def test_a_payload_names_a_namespace_and_a_version() -> None:
    assert parse_hint('{"namespace": "a/b", "version": 7}') == (NamespaceName.parse("a/b"), 7)
    assert parse_hint('{"namespace": "a/b", "version": 0, "more": []}') == (NamespaceName.parse("a/b"), 0)


@pytest.mark.parametrize(
    "payload",
    [
        "", "a/b", "null", "[]", "{}", '"x"', '{"namespace": "a/b"}', '{"version": 1}',
        '{"namespace": "a", "version": 1}',
        '{"namespace": ["a/b"], "version": 1}', '{"namespace": "a/b", "version": "1"}',
        '{"namespace": "a/b", "version": 1.5}',
        '{"namespace": "a/b", "version": true}', '{"namespace": "a/b", "version": -1}', "[" * 1999,
        '{"namespace": "a/b", "version": 9223372036854775808}', '{"namespace": "a/b", "version": 1}' + " " * 2000,
    ],
    ids=range(17),
)  # fmt: skip
def test_what_is_no_hint_is_none(payload: str) -> None:
    assert parse_hint(payload) is None


async def test_changes_are_heard_of(database: Database, admin: Any) -> None:
    heard: list[str] = []
    listener = TopicsListener(
        ConnectionParameters.parse(database.dsn), lambda namespace: heard.append(str(namespace)), probe=0.01
    )
    listener.start()
    try:
        await eventually(lambda: listener.connected, _LONG)
        await add(admin, "public/default", "one")
        await eventually(lambda: heard == ["public/default"], _LONG)
        assert listener.versions["public/default"] == 1
        await admin.execute("SELECT pg_notify('broker_core_topics', 'nothing')")
        await eventually(lambda: listener.ignored == 1, _LONG)
        assert listener.connected  # the probes have not closed it
    finally:
        await listener.close()
    assert not listener.connected


async def test_what_was_missed_is_caught_up_with(database: Database, admin: Any) -> None:
    for namespace in ("public/same", "public/moved", "public/gone"):
        await add(admin, namespace, "one")
    heard: list[str] = []
    listener = TopicsListener(
        ConnectionParameters.parse(database.dsn), lambda namespace: heard.append(str(namespace))
    )
    with capture_logs() as logs:
        listener.start()
        try:
            await eventually(lambda: listener.connected, _LONG)
            assert heard == []
            async with admin.transaction():  # changes without a notification
                await admin.execute("SET LOCAL session_replication_role = replica")
                await admin.execute(
                    "UPDATE broker_core.namespace_versions SET version = version + 1 WHERE namespace = 'public/moved'"
                )
                await admin.execute(
                    "DELETE FROM broker_core.namespace_versions WHERE namespace = 'public/gone'"
                )
            await admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'broker-core listen' AND datname = current_database()"
            )
            await eventually(lambda: listener.losses == 1 and listener.connected, _LONG)
        finally:
            await listener.close()
    assert sorted(heard) == ["public/gone", "public/moved"]
    assert listener.caught_up == 2
    events = [entry["event"] for entry in logs]
    assert "not listening for changes of topics: each listing still reads its version" in events
    assert logs[-1]["changed_meanwhile"] == 2


async def test_nobody_waits_for_a_server_that_is_not_there() -> None:
    heard: list[str] = []
    parameters = ConnectionParameters.parse(f"postgresql://me@127.0.0.1:{free_port()}/x")
    listener = TopicsListener(parameters, lambda namespace: heard.append(str(namespace)))
    with capture_logs() as logs:
        listener.start()
        await eventually(lambda: logs, _LONG)
        await listener.close()
    assert "not listening" in logs[0]["event"]
    assert len(logs) == 1  # one line, not one for each attempt
    assert (listener.losses, heard) == (0, [])


async def test_many_hints_of_one_packet_are_one(database: Database, admin: Any) -> None:
    heard: list[str] = []
    listener = TopicsListener(
        ConnectionParameters.parse(database.dsn),
        lambda namespace: heard.append(str(namespace)),
        versions_query=None,
    )
    listener.start()
    try:
        await eventually(lambda: listener.connected, _LONG)
        async with admin.transaction():
            for version in range(50):
                payload = f'{{"namespace": "public/x", "version": {version}}}'
                await admin.execute("SELECT pg_notify('broker_core_topics', $1)", payload)
        await eventually(lambda: listener.versions.get("public/x") == 49, _LONG)
        assert listener.hints == 50
        assert 1 <= len(heard) <= 50
        await asyncio.sleep(0)
    finally:
        await listener.close()


async def test_listings_have_the_first_connection(database: Database) -> None:
    allowed = False
    listener = TopicsListener(
        ConnectionParameters.parse(database.dsn), lambda _namespace: None, may_connect=lambda: allowed
    )
    listener.start()
    try:
        admin = await database.connect()
        assert (
            await admin.fetchval(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE application_name = 'broker-core listen' AND datname = current_database()"
            )
            == 0
        )
        await admin.close()
        allowed = True
        await eventually(lambda: listener.connected, _LONG)
    finally:
        await listener.close()
