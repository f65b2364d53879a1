"""A real replica, in step and behind."""

from __future__ import annotations

import asyncio

from tests.postgres.fault_setup import LONG, NAMESPACE, TOPICS, fill_topics, serving
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer


async def test_a_replica_answers_while_it_keeps_up_and_never_when_it_does_not() -> None:
    """A listing has everything that was written before it was asked for, whatever the replica has replayed."""
    with PostgresServer() as primary:
        database = primary.create_database()
        fill_topics(database)
        standby = await asyncio.to_thread(primary.start_replica)
        try:
            replica = standby.dsn(database.name)
            async with serving(
                database.dsn, replicas=[replica, f"postgresql://me@127.0.0.1:{free_port()}/x"]
            ) as broker:
                choices = broker.service.server_pools.chooser.choices

                async def used() -> bool:
                    assert sorted(await broker.list()) == TOPICS
                    return choices["replica"] > 0

                await eventually(used, LONG)
                await asyncio.to_thread(standby.sql, "SELECT pg_wal_replay_pause()")
                name = "persistent://public/default/topic-new"
                database.sql(
                    f"INSERT INTO broker_core.topics (namespace, local_name) VALUES ('{NAMESPACE}', 'topic-new')"
                )
                for _ in range(4):
                    assert sorted(await broker.list()) == sorted([*TOPICS, name])
                assert choices["replica_behind"] > 0
                assert choices["replica_failed"] > 0, "nobody listens at the other one's port"
                assert broker.service.server_pools.replicas[0].in_use == 0, (
                    "the connection to a replica that is behind is given back"
                )
                assert broker.metric("replica_lag_versions", pool="replica_1") == 1
                before = choices["replica"]
                await asyncio.to_thread(standby.sql, "SELECT pg_wal_replay_resume()")

                async def used_again() -> bool:
                    assert sorted(await broker.list()) == sorted([*TOPICS, name])
                    return choices["replica"] > before

                await eventually(used_again, LONG)
        finally:
            await asyncio.to_thread(standby.close)
