"""A bounded pool of connections to one database, whose server may be one of several hosts.

Idle connections are a stack: the one used last is taken first. A request without an idle connection waits in a queue of
bounded length. Tasks of the pool open connections, so a cancelled request wastes none. A connection that was closed,
grew old or failed its probe is dropped. A connection whose statement was cancelled is reused after the server has
confirmed the end of that statement. While no connection can be made the pool is *down*: requests are refused at once
with the reason, and the pool retries at growing intervals.

asyncpg's pool has no bound for waiting requests, does not remember that a server is down, does not follow hosts that
change their roles, and resets each session (``RESET ALL``). A pooler of transactions cannot take that reset, and it
costs a round trip.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

import asyncpg
import structlog

from broker_core.errors import ListingFailed
from broker_core_postgres.connect.failures import (
    DRIVER_ERRORS,
    DatabaseFailed,
    failure_of,
    is_connection_lost,
    server_message,
)
from broker_core_postgres.connect.libpq import ConnectionParameters, ServerAddress, satisfies_attributes
from broker_core_postgres.connect.open_connection import CannotConnect, close_connection, connect_first_host
from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings

__all__ = ["PooledConnection", "PostgresPool"]

_log = structlog.get_logger(__name__)

#: Seconds between attempts while the server is down: first and last; they double in between.
_BACK_OFF: Final = (0.1, 1.0)
#: Seconds for the server to confirm the end of a cancelled statement, or to answer a probe.
_SETTLE: Final = 5.0
#: Seconds for the server to end an idle connection of a pool that closes.
_CLOSING: Final = 1.0
#: Seconds between two checks of idle connections.
_TICK: Final = 1.0
#: Seconds without use after which an idle connection is probed.
_PROBE: Final = 15.0

#: Called with each new connection before its first use. It raises if the connection must not be used.
ConnectionCheck: TypeAlias = Callable[[Any], Awaitable[None]]


class PooledConnection:
    """A connection of a pool. :meth:`PostgresPool.release` takes it back."""

    __slots__ = ("connection", "expires", "generation", "host", "used")

    def __init__(
        self, connection: Any, host: ServerAddress, generation: int, now: float, lifetime: float
    ) -> None:
        self.connection = connection
        self.host = host
        self.generation = generation
        self.used = now
        # At random, so that connections of one start do not expire together.
        self.expires = now + _jittered(lifetime) if lifetime else float("inf")


class PostgresPool:
    """A pool for the event loop that starts it. ``name`` is its name in the log and the metrics.

    ``on_down`` is called with the failure when no connection can be made, and with ``None`` after the next success.
    """

    def __init__(
        self,
        parameters: ConnectionParameters,
        settings: PostgresSettings,
        session: SessionSettings,
        *,
        name: str = "primary",
        check: ConnectionCheck | None = None,
        on_down: Callable[[ListingFailed | None], None] | None = None,
        probe: float = _PROBE,
    ) -> None:
        self.parameters = parameters
        self.settings = settings
        self._session = session
        self._probe = probe
        self.name = name
        self.failure: ListingFailed | None = None  # of the last attempt to connect, if it failed
        self.opened = 0
        self.dropped = 0
        self.refused = 0
        self._check = check
        self._on_down = on_down
        self._idle: list[PooledConnection] = []
        self._live: set[PooledConnection] = set()
        self._waiters: deque[asyncio.Future[PooledConnection]] = deque()
        self._opening = 0
        self._generation = 0
        self._host: ServerAddress | None = None
        self._failures = 0  # attempts to connect that failed, in a row
        self._retry_at = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._wake = asyncio.Event()

    # -- state

    @property
    def size(self) -> int:
        """Connections that are open or being opened."""
        return len(self._live) + self._opening

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def in_use(self) -> int:
        """Connections that listings hold, or whose cancelled statement has not ended yet."""
        return len(self._live) - len(self._idle)

    @property
    def waiting(self) -> int:
        """Requests that wait for a connection."""
        return sum(not waiter.done() for waiter in self._waiters)

    @property
    def down(self) -> bool:
        """Whether there is no connection and the last attempt to make one failed."""
        return self.failure is not None and not self._live

    @property
    def host(self) -> ServerAddress | None:
        """The host that was connected to last."""
        return self._host

    # -- life

    async def start(self) -> ListingFailed | None:
        """Open the minimum of connections. Returns the failure of the first attempt that failed; the pool retries."""
        self._start_task(self._maintain())
        for _ in range(max(self.settings.pool_min, 1)):
            self._opening += 1
            await self._open()
            if self.failure is not None:
                break
        return self.failure

    def follow(self, settings: PostgresSettings, session: SessionSettings) -> None:
        """Apply other bounds from now on. Connections that were set up otherwise end when nothing uses them."""
        is_other = session.setup_sql != self._session.setup_sql
        self.settings, self._session = settings, session
        if is_other:
            self._invalidate_all()
        self._wake.set()
        self._grow()

    async def close(self) -> None:
        """Refuse waiting requests and close all connections, also those in use."""
        self._closed = True
        self._fail_waiters(DatabaseFailed.of("closed"))
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        idle, self._idle = self._idle, []
        for held in self._live - set(idle):
            held.connection.terminate()
        await asyncio.gather(*(close_connection(held.connection, _CLOSING) for held in idle))
        self._live.clear()

    # -- acquire and release

    async def acquire(self, deadline: float = float("inf")) -> PooledConnection:
        """Return a connection before ``deadline`` on the loop's clock.

        Raises :exc:`~broker_core.errors.ListingFailed` with the reason ``pool_full``, ``pool_timeout`` or ``closed``,
        or with that of the failed attempt to connect.
        """
        if self._closed:
            raise DatabaseFailed.of("closed")
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._idle:
            held = self._idle.pop()
            if self._usable(held, now):
                return held
            self._drop(held)
        if self.failure is not None and not self._live and not self._opening and now < self._retry_at:
            raise self.failure.copy()
        if self.waiting - self._opening >= self.settings.pool_waiting:
            self.refused += 1
            raise DatabaseFailed.of("pool_full")
        waiter: asyncio.Future[PooledConnection] = loop.create_future()
        self._waiters.append(waiter)
        self._grow()
        try:
            async with asyncio.timeout_at(deadline if deadline != float("inf") else None):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._hand_over(waiter.result())  # the connection came with the cancellation
            else:
                waiter.cancel()
            if isinstance(error, TimeoutError):
                self.refused += 1
                raise (
                    self.failure.copy() if self.down and self.failure else DatabaseFailed.of("pool_timeout")
                ) from None
            raise
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def release(self, held: PooledConnection, error: BaseException | None = None) -> None:
        """Take a connection back without waiting. ``error`` is the error of its use."""
        connection = held.connection
        if error is not None and is_connection_lost(error):
            # The server is gone or ended the session: its other connections are not trusted either.
            self._invalidate_all()
            self._drop(held)
        elif connection.is_closed() or held not in self._live:
            self._drop(held)
        elif connection.is_in_transaction() or not (
            error is None or isinstance(error, asyncpg.PostgresError)
        ):
            self._start_task(self._settle(held))
        else:
            self._return(held)

    @contextmanager
    def used(self, held: PooledConnection, *, keep: bool = False) -> Iterator[Any]:
        """The connection for a block, which the pool takes back after it; with ``keep`` only after an error.

        Errors of the driver are raised as :exc:`~broker_core.errors.ListingFailed`.
        """
        try:
            yield held.connection
        except BaseException as error:
            self.release(held, error)
            if isinstance(error, DRIVER_ERRORS):
                raise failure_of(error) from error
            raise
        if not keep:
            self.release(held)

    # -- inside

    def _usable(self, held: PooledConnection, now: float) -> bool:
        if held.connection.is_closed() or held.generation != self._generation or now >= held.expires:
            return False
        # The server reports its recovery with the next statement.
        wanted = self.parameters.session_attributes in {"primary", "read-write"}
        return not (wanted and getattr(held.connection.get_settings(), "in_hot_standby", "off") == "on")

    def _return(self, held: PooledConnection) -> None:
        now = asyncio.get_running_loop().time()
        held.used = now
        if self._closed or not self._usable(held, now):
            self._drop(held)
        else:
            self._hand_over(held)

    def _hand_over(self, held: PooledConnection) -> None:
        """Give a connection to the request that has waited longest, or keep it as idle."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(held)
                return
        self._idle.append(held)

    def _drop(self, held: PooledConnection) -> None:
        held.connection.terminate()
        if held in self._live:
            self._live.remove(held)
            self.dropped += 1
            self._report_down()  # an attempt may have failed while there was this connection still
        self._wake.set()
        self._grow()

    def _invalidate_all(self) -> None:
        self._generation += 1
        idle, self._idle = self._idle, []
        for held in idle:
            self._drop(held)

    def _grow(self) -> None:
        """Open connections for waiting requests, within the bounds. Refuse the requests if none can be opened."""
        if self._closed:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._retry_at:
            while self.waiting > self._opening and self.size < self.settings.pool_max:
                self._opening += 1
                self._start_task(self._open())
        elif not self._live and not self._opening and self.failure is not None:
            self._fail_waiters(self.failure)

    def _fail_waiters(self, failure: ListingFailed) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(failure.copy())

    async def _settle(self, held: PooledConnection) -> None:
        """Wait for the end of a cancelled statement, and reuse the connection if it is clean."""
        try:
            async with asyncio.timeout(_SETTLE):
                if held.connection.is_in_transaction():
                    await held.connection.execute("ROLLBACK")
                # A cancellation that arrives late ends this statement instead of a listing's.
                await held.connection.execute("SELECT 1")
        except Exception as error:  # noqa: BLE001 - whatever it is, the connection is not clean
            _log.debug("connection dropped", pool=self.name, error=server_message(error))
            self._drop(held)
        except BaseException:
            self._drop(held)
            raise
        else:
            self._return(held)

    async def _open(self) -> None:
        """Try once to connect. The caller has counted the attempt in ``_opening``."""
        try:
            held = await self._connect()
        except Exception as error:  # noqa: BLE001 - all of them mean that there is no connection
            self._opening -= 1
            self._record_failure(error)
            return
        except BaseException:
            self._opening -= 1
            raise
        self._opening -= 1
        if self._failures:
            _log.info("connected to PostgreSQL again", pool=self.name, host=str(held.host))
        self._failures = 0
        was_down, self.failure = self.failure, None
        self.opened += 1
        self._host = held.host
        self._live.add(held)
        if was_down is not None and self._on_down is not None:
            self._on_down(None)
        self._hand_over(held)
        self._grow()

    async def _connect(self) -> PooledConnection:
        session = self._session
        generation = self._generation
        connection, host = await connect_first_host(
            self.parameters,
            application_name=session.application_name,
            timeout=self.settings.connect_timeout,
            first=None if self.parameters.shuffled else self._host,
            statement_cache_size=session.statement_cache_size,
        )
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                if session.setup_sql:
                    await connection.execute(session.setup_sql)
                if self._check is not None:
                    await self._check(connection)
        except BaseException:
            connection.terminate()
            raise
        now = asyncio.get_running_loop().time()
        return PooledConnection(connection, host, generation, now, self.settings.pool_lifetime)

    def _record_failure(self, error: Exception) -> None:
        failure = error.failure if isinstance(error, CannotConnect) else failure_of(error)
        now = asyncio.get_running_loop().time()
        if self.failure is None or self.failure.reason != failure.reason:
            _log.warning(
                "no connection to PostgreSQL",
                pool=self.name,
                reason=failure.reason,
                error=server_message(error),
                hint=failure.message,
            )
        self.failure = failure
        self._report_down()
        if now >= self._retry_at:  # attempts that fail together count once
            self._failures += 1
            first, last = _BACK_OFF
            self._retry_at = now + _jittered(min(last, first * 2.0 ** min(self._failures - 1, 16)))
        self._wake.set()
        self._grow()

    def _report_down(self) -> None:
        if self.down and self._on_down is not None:
            self._on_down(self.failure)

    # -- maintenance

    async def _maintain(self) -> None:
        loop = asyncio.get_running_loop()
        roles_at = loop.time() + self._probe
        while not self._closed:
            pause = min(max(self._retry_at - loop.time(), 0.01), _TICK) if self._needs_connection() else _TICK
            try:
                # Not wait_for: in Python 3.11 it loses a cancellation that arrives together with the result.
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if self._needs_connection() and loop.time() >= self._retry_at:
                self._opening += 1
                await self._open()
            self._grow()
            for held in list(self._idle):
                self._check_idle(held, loop.time())
            if self.parameters.session_attributes != "any" and loop.time() >= roles_at and self._live:
                roles_at = loop.time() + self._probe
                await self._check_role()

    def _needs_connection(self) -> bool:
        """Whether to open a connection that no request waits for."""
        return self.size < self.settings.pool_min or (self.failure is not None and not self.size)

    def _check_idle(self, held: PooledConnection, now: float) -> None:
        """Drop an idle connection that expired, and probe one that was unused for long."""
        if held not in self._idle:
            return
        too_many = bool(self.settings.pool_idle) and len(self._live) > self.settings.pool_min
        if not self._usable(held, now) or (too_many and now - held.used >= self.settings.pool_idle):
            self._idle.remove(held)
            self._drop(held)
        elif now - held.used >= self._probe:
            self._idle.remove(held)
            self._start_task(self._settle(held))

    async def _check_role(self) -> None:
        """Leave a host that ``target_session_attrs`` excludes since it was demoted or made read-only."""
        loop = asyncio.get_running_loop()
        try:
            held = await self.acquire(loop.time() + _SETTLE)
        except ListingFailed:
            return  # the next check decides
        with suppress(ListingFailed), self.used(held) as connection:
            async with asyncio.timeout(_SETTLE):
                if await satisfies_attributes(connection, self.parameters.session_attributes, in_use=True):
                    return
            _log.warning(
                "host of PostgreSQL is left: its role changed",
                pool=self.name,
                host=str(held.host),
                wanted=self.parameters.session_attributes,
            )
            self._host = None
            self._invalidate_all()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _jittered(seconds: float) -> float:
    """Slightly less, at random, so that connections do not stay in step."""
    return seconds * random.uniform(0.7, 1.0)  # noqa: S311 - nothing is to be kept secret
