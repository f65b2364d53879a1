"""Connections to read listings with: the pool of the primary, and those of read replicas that keep up.

    async with connections.acquire(deadline=request.deadline, namespace=str(request.namespace)) as connection:
        rows = await connection.fetch(...)

A connection comes ready to read, in a read-only session or transaction, with the time limit of a statement. When the
task that uses it is cancelled, the driver asks the server to stop the statement; the connection comes back into use
when the server has said that it did.

Which server a listing is read from is judged in :mod:`.replica_lag`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.connection_pool import ConnectionCheck, PostgresPool
from broker_core_postgres.connect.failures import (
    DRIVER_ERRORS,
    DatabaseFailed,
    failure_of,
    is_connection_lost,
)
from broker_core_postgres.connect.open_connection import parameters_of
from broker_core_postgres.connect.replica_lag import ReplicaChooser
from broker_core_postgres.connect.server_identity import ServerIdentity
from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings

__all__ = ["TOPICS", "ServerPools"]

T = TypeVar("T")

#: The table that listings are read from, as it is written in SQL.
TOPICS: Final = "broker_core.topics"


class ServerPools:
    """The plugin's pools; all methods are for the event loop. Raises :exc:`DsnError` for settings that cannot be read.

    ``check`` is asked of every new connection, as of its schema: what it raises is what listings fail with.
    ``on_other_server`` is called when new connections are to another server, or to the same one with another history
    (a failover, a restored backup): versions that were seen before say nothing then. ``on_down`` is told why the
    primary cannot be connected to, and ``None`` when it can again. ``lock`` is the table that keeps its rows while a
    snapshot is read, ``None`` for what cannot be locked.
    """

    def __init__(
        self,
        settings: PostgresSettings,
        *,
        check: ConnectionCheck | None = None,
        on_other_server: Callable[[], None] | None = None,
        on_down: Callable[[ListingFailed | None], None] | None = None,
        session_settings: Mapping[str, str] | None = None,
        one_plan: bool = False,
    ) -> None:
        identity = ServerIdentity(on_other_server)

        async def checked(connection: Any) -> None:
            await identity.check(connection)
            if check is not None:
                await check(connection)

        self.session = SessionSettings(settings, server_settings=session_settings or {}, one_plan=one_plan)
        self.primary = PostgresPool(
            parameters_of(settings), settings, self.session, check=checked, on_down=on_down
        )
        self.replicas = tuple(
            PostgresPool(
                parameters_of(settings, replica),
                settings,
                self.session,
                name=f"replica_{number}",
                check=check,
            )
            for number, replica in enumerate(settings.replicas, 1)
        )
        self.lock: str | None = TOPICS
        self.retries = 0
        self.chooser = ReplicaChooser(self.primary, self.replicas, settings.replica_max_lag)

    @property
    def pools(self) -> tuple[PostgresPool, ...]:
        """The primary's pool and those of the replicas."""
        return (self.primary, *self.replicas)

    async def start(self) -> ListingFailed | None:
        """Open the connections that are always kept. The failure of the primary, if there is none now: it is tried on.

        Raises nothing: a server that is down at the start is one that comes up later.
        """
        failures = await asyncio.gather(*(pool.start() for pool in self.pools))
        return failures[0]

    async def close(self) -> None:
        """Close all connections; whoever waits for one is refused."""
        await asyncio.gather(*(pool.close() for pool in self.pools))

    @contextlib.asynccontextmanager
    async def acquire(
        self, *, deadline: float = float("inf"), namespace: str | None = None, snapshot: bool = False
    ) -> AsyncIterator[Any]:
        """An ``asyncpg.Connection`` to read with, for the time of the block.

        ``deadline`` is on the loop's clock and bounds the waiting for a connection. With ``namespace`` a replica may
        answer, if it is not behind for that namespace. With ``snapshot`` all statements of the block see one state, of
        a time at which nobody was in the middle of replacing all rows.
        Errors of the driver and of the connection leave the block as :exc:`~broker_core.errors.ListingFailed`.
        """
        pool, held = await self.chooser.acquire(deadline, namespace)
        connection = held.connection
        raised: BaseException | None = None
        try:
            begin = self.session.begin_sql(snapshot=snapshot, lock=self.lock)
            if begin:
                await connection.execute(begin)
            yield connection
            if begin:
                await connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            raised = error
            raise failure_of(error) from error
        except BaseException as error:
            raised = error
            raise
        finally:
            pool.release(held, raised)

    async def read(
        self,
        work: Callable[[Any], Awaitable[T]],
        *,
        deadline: float = float("inf"),
        namespace: str | None = None,
        snapshot: bool = False,
    ) -> T:
        """What ``work`` makes of a connection; once more on a fresh one, where the first broke.

        ``work`` begins anew then, and must not have handed out anything of its first attempt.
        """
        try:
            async with self.acquire(deadline=deadline, namespace=namespace, snapshot=snapshot) as connection:
                return await work(connection)
        except DatabaseFailed as failure:
            if not is_connection_lost(failure):
                raise
            self.retries += 1
        async with self.acquire(deadline=deadline, namespace=namespace, snapshot=snapshot) as connection:
            return await work(connection)
