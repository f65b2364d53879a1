"""Connections to read listings with: the pool of the primary, and those of read replicas that keep up.

    async with connections.acquire(deadline=request.deadline, namespace=str(request.namespace)) as connection:
        rows = await connection.fetch(...)

A connection comes ready to read, in a read-only session or transaction, with the time limit of a statement. When the
task that uses it is cancelled, the driver asks the server to stop the statement; the connection comes back into use
when the server has said that it did.

A replica answers only for a state that is new enough: the version of the namespace there is compared with the one that
the primary has now, an index look-up at each, so that what was written before a listing was asked for is in it (with
``max_lag`` 0). Where a replica is behind, fails or cannot be compared, the primary answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import structlog

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.connection_pool import BoundedPool, Check, Held
from broker_core_postgres.connect.failures import DRIVER_ERRORS, DatabaseFailed, failed, is_lost
from broker_core_postgres.connect.open_connection import target_of
from broker_core_postgres.connect.server_identity import ServerIdentity
from broker_core_postgres.connect.session_settings import Session
from broker_core_postgres.settings import PostgresSettings

__all__ = ["TOPICS", "Connections"]

#: Which server a listing may be read from, for the metrics.
_CHOICES: Final = ("primary", "replica", "replica_behind", "replica_failed")
_log = structlog.get_logger(__name__)

T = TypeVar("T")

#: The table that listings are read from, as it is written in SQL.
TOPICS: Final = "broker_core.topics"
#: The state of a namespace; no row where it was never loaded.
_VERSION: Final = "SELECT version FROM broker_core.namespaces WHERE namespace = $1"


class Connections:
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
        check: Check | None = None,
        on_other_server: Callable[[], None] | None = None,
        on_down: Callable[[ListingFailed | None], None] | None = None,
        session_settings: Mapping[str, str] | None = None,
        one_plan: bool = False,
    ) -> None:
        identity = ServerIdentity(on_other_server)

        async def checked(connection: Any) -> None:
            await identity.look(connection)
            if check is not None:
                await check(connection)

        self.session = Session(settings, server_settings=session_settings or {}, one_plan=one_plan)
        self.primary = BoundedPool(
            target_of(settings), settings, self.session, check=checked, on_down=on_down
        )
        self.replicas = tuple(
            BoundedPool(
                target_of(settings, replica), settings, self.session, name=f"replica_{number}", check=check
            )
            for number, replica in enumerate(settings.replicas, 1)
        )
        self.lock: str | None = TOPICS
        self.retries = 0
        #: How listings chose a server: ``primary``, ``replica``, ``replica_behind``, ``replica_failed``.
        self.choices: Counter[str] = Counter(dict.fromkeys(_CHOICES, 0))
        #: By name of a replica's pool, how many versions it was behind when it was last compared.
        self.lags: dict[str, int] = {}
        #: How many versions a replica that answers may be behind; 0 where there are none.
        self.max_lag = settings.replica_max_lag if settings.replicas else 0
        self._turn = 0

    @property
    def pools(self) -> tuple[BoundedPool, ...]:
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
        pool, held = await self._taken(deadline, namespace)
        connection = held.connection
        raised: BaseException | None = None
        try:
            begin = self.session.begin(snapshot=snapshot, lock=self.lock)
            if begin:
                await connection.execute(begin)
            yield connection
            if begin:
                await connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            raised = error
            raise failed(error) from error
        except BaseException as error:
            raised = error
            raise
        finally:
            pool.give(held, raised)

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
            if not is_lost(failure):
                raise
            self.retries += 1
        async with self.acquire(deadline=deadline, namespace=namespace, snapshot=snapshot) as connection:
            return await work(connection)

    async def _taken(self, deadline: float, namespace: str | None) -> tuple[BoundedPool, Held]:
        if self.replicas and namespace is not None:
            newest = await self._version(
                self.primary, await self.primary.take(deadline), namespace, keep=False
            )
            for pool in self._in_turn():
                if newest is None:  # never loaded: that is the primary's to say
                    break
                held = await self._on_replica(pool, deadline, namespace, newest)
                if held is not None:
                    self.choices["replica"] += 1
                    return pool, held
        self.choices["primary"] += 1
        return self.primary, await self.primary.take(deadline)

    def _in_turn(self) -> Sequence[BoundedPool]:
        self._turn = (self._turn + 1) % len(self.replicas)
        return (*self.replicas[self._turn :], *self.replicas[: self._turn])

    async def _on_replica(
        self, pool: BoundedPool, deadline: float, namespace: str, newest: int
    ) -> Held | None:
        """A connection to a replica that has ``newest``, less the allowed lag; ``None`` where it cannot answer."""
        try:
            held = await pool.take(deadline)
            version = await self._version(pool, held, namespace, keep=True)
        except ListingFailed as failure:
            self.choices["replica_failed"] += 1
            _log.debug("replica cannot answer", pool=pool.name, reason=failure.reason)
            return None
        if version is not None:
            self.lags[pool.name] = max(newest - version, 0)
            if version >= newest - self.max_lag:
                return held
        pool.give(held)
        self.choices["replica_behind"] += 1
        return None

    async def _version(self, pool: BoundedPool, held: Held, namespace: str, *, keep: bool) -> int | None:
        """The version at a server; ``held`` is given back, unless it is to be kept and nothing failed."""
        raised: BaseException | None = None
        try:
            value = await held.connection.fetchval(_VERSION, namespace)
            return None if value is None else int(value)
        except DRIVER_ERRORS as error:
            raised = error
            raise failed(error) from error
        except BaseException as error:
            raised = error
            raise
        finally:
            if raised is not None or not keep:
                pool.give(held, raised)
