"""The pools of connections that listings are read with: one for the primary, one for each read replica.

    async with server_pools.acquire(deadline=request.deadline, namespace=str(request.namespace)) as connection:
        rows = await connection.fetch(...)

A connection is ready to read: in a read-only session or transaction, with a time limit for each statement. When the
task that uses it is cancelled, the driver cancels the statement at the server, and the pool reuses the connection after
the server has confirmed that.

:mod:`.replica_lag` decides which server a listing is read from.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.connection_pool import ConnectionCheck, PostgresPool
from broker_core_postgres.connect.failures import (
    DatabaseFailed,
    is_connection_lost,
)
from broker_core_postgres.connect.open_connection import parameters_of
from broker_core_postgres.connect.replica_lag import ReplicaChooser
from broker_core_postgres.connect.server_identity import ServerIdentity
from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings

__all__ = ["TOPICS", "ServerPools"]

T = TypeVar("T")

#: The table that listings are read from, as SQL.
TOPICS: Final = "broker_core.topics"


class ServerPools:
    """The plugin's pools, for the event loop. Raises :exc:`DsnError` for settings that cannot be read.

    ``check`` is called with each new connection, to check the schema, say; listings fail with its error.
    ``on_other_server`` is called when a new connection is to another server or another history: versions seen before
    are void then. ``on_down`` is called with the failure when the primary cannot be connected to, and with ``None``
    after the next success. ``lock`` is the table that is locked while a snapshot is read, ``None`` for a relation that
    cannot be locked.
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
        """The pools of the primary and of the replicas."""
        return (self.primary, *self.replicas)

    async def start(self) -> ListingFailed | None:
        """Open the minimum of connections. Returns the failure of the primary, if it has one now; the pools retry.

        A server that is down at the start does not raise: it may come up later.
        """
        failures = await asyncio.gather(*(pool.start() for pool in self.pools))
        return failures[0]

    def follow(self, settings: PostgresSettings) -> None:
        """Apply other bounds from now on."""
        self.session = replace(self.session, settings=settings)
        for pool in self.pools:
            pool.follow(settings, self.session)

    async def close(self) -> None:
        """Close all connections and refuse waiting requests."""
        await asyncio.gather(*(pool.close() for pool in self.pools))

    @contextlib.asynccontextmanager
    async def acquire(
        self, *, deadline: float = float("inf"), namespace: str | None = None, snapshot: bool = False
    ) -> AsyncIterator[Any]:
        """An ``asyncpg.Connection`` for the block, read-only.

        ``deadline``, on the loop's clock, bounds the wait for a connection. With ``namespace`` a replica may answer
        that does not lag for this namespace. With ``snapshot`` all statements of the block see one state, none in which
        a ``TRUNCATE`` and its new rows are half done. Errors of the driver and of the connection are raised as
        :exc:`~broker_core.errors.ListingFailed`.
        """
        pool, held = await self.chooser.acquire(deadline, namespace)
        with pool.used(held) as connection:
            begin = self.session.begin_sql(snapshot=snapshot, lock=self.lock)
            if begin:
                await connection.execute(begin)
            yield connection
            if begin:
                await connection.execute("COMMIT")

    async def read(
        self,
        work: Callable[[Any], Awaitable[T]],
        *,
        deadline: float = float("inf"),
        namespace: str | None = None,
        snapshot: bool = False,
    ) -> T:
        """The result of ``work(connection)``; called once more, with a new connection, if the first one broke.

        The second call starts from nothing: the first one must not have handed out any of its rows.
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
