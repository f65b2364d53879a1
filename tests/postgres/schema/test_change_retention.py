"""Retention of the change log, also for programs that write by SQL alone."""

from __future__ import annotations

from typing import Any

from broker_core_postgres.fill.table_maintenance import maintain_topics
from tests.postgres.schema.log_replay import check_everything

_INSERT = "INSERT INTO broker_core.topics (namespace, local_name) VALUES "
_AGED = """UPDATE broker_core.changes SET changed = changed - interval '2 hours' WHERE version <= $1;"""


async def _turns(connection: Any, count: int) -> None:
    """Make versions of a namespace, half of which delete a topic."""
    for number in range(count):
        await connection.execute(f"{_INSERT} ('a/b', 'x{number}')")
        await connection.execute("DELETE FROM broker_core.topics WHERE namespace = 'a/b'")


async def _kept(connection: Any) -> tuple[Any, ...]:
    """The floor, and the oldest versions in the log and of a tombstone."""
    return tuple(
        await connection.fetchrow(
            "SELECT log_floor, (SELECT min(version) FROM broker_core.changes),"
            " (SELECT min(deleted_version) FROM broker_core.tombstones) FROM broker_core.namespaces"
        )
    )


async def test_what_is_too_old_goes_with_the_next_change(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(age => '1 hour')")
    await _turns(connection, 4)
    await connection.execute(_AGED, 5)
    assert await _kept(connection) == (0, 1, 2)
    await connection.execute(f"{_INSERT} ('c/d', 'another namespace')")
    assert (
        await connection.fetchval("SELECT log_floor FROM broker_core.namespaces WHERE namespace = 'a/b'")
    ) == 0
    await connection.execute(f"{_INSERT} ('a/b', 'y')")
    await connection.execute("DELETE FROM broker_core.topics WHERE namespace = 'c/d'")
    await connection.execute("SELECT broker_core.forget_namespace('c/d')")
    await connection.execute("DELETE FROM broker_core.changes WHERE namespace = 'c/d'")
    await connection.execute("DELETE FROM broker_core.tombstones WHERE namespace = 'c/d'")
    assert await _kept(connection) == (5, 6, 6)


async def test_for_ever_is_for_ever(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(age => '0')")
    await _turns(connection, 2)
    await connection.execute(_AGED, 4)
    await connection.execute(f"{_INSERT} ('a/b', 'y')")
    assert await check_everything(connection) == {"a/b": 5}


async def test_tombstones_are_as_many_as_the_log(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(versions => 8)")
    await _turns(connection, 30)
    floor, logged, dead = await _kept(connection)
    assert 50 <= floor < 60
    assert logged == floor + 1
    assert floor < dead <= floor + 2
    await connection.execute("SELECT broker_core.set_retention(rows => 2)")
    await connection.execute(f"{_INSERT} ('a/b', 'x'), ('a/b', 'y'), ('a/b', 'z')")
    assert await _kept(connection) == (61, None, None), "a gap: nobody can catch up from before"


async def test_what_a_statement_logs_has_room_within_the_bound(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(rows => 100)")
    await _turns(connection, 40)
    for count in (60, 30, 100):
        await connection.execute(
            f"INSERT INTO broker_core.topics (namespace, local_name) SELECT 'a/b', '{count}-' || n "
            f"FROM generate_series(1, {count}) n"
        )
        logged, version = await connection.fetchrow(
            "SELECT count(*), max(version) FROM broker_core.changes WHERE namespace = 'a/b'"
        )
        assert count <= logged <= 100
        assert version == await connection.fetchval("SELECT version FROM broker_core.namespaces")


async def test_commands_let_go_of_it_too(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(age => '1 hour')")
    await _turns(connection, 2)
    await connection.execute(_AGED, 3)
    await connection.execute("UPDATE broker_core.tombstones SET deleted = deleted - interval '2 hours'")
    await maintain_topics(connection, 1)
    assert await _kept(connection) == (3, 4, None)


async def test_a_name_that_joins_a_topic_takes_its_id_within_a_transaction_too(connection: Any) -> None:
    async with connection.transaction():
        await connection.execute(f"{_INSERT} ('a/b', 'x-partition-1')")
        await connection.execute(f"{_INSERT} ('a/b', 'x')")
        await connection.execute(f"{_INSERT} ('a/b', 'z')")
        await connection.execute(
            "UPDATE broker_core.topics SET local_name = 'x-partition-0' WHERE local_name = 'z'"
        )
    assert await check_everything(connection) == {"a/b": 1}
