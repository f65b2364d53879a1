"""Connections of one principal to one cluster or broker: opened on demand, replaced when they are lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from broker_core.client.client_errors import ClientError, ConnectionLost, is_of_identity
from broker_core.client.failover.address_health import AddressHealth
from broker_core.client.failover.connection_places import ConnectionPlaces
from broker_core.concurrency import backoff
from broker_core.service_addresses import Address

__all__ = ["Connect", "ConnectionPool", "PoolOptions", "Poolable"]

T = TypeVar("T")

_TRIES: Final = (
    2  # questions to a cluster change nothing there, so a lost answer may be asked for again, once
)


class Poolable(Protocol):
    """A connection as a pool needs it: ``pending`` requests wait for their answers, ``unwanted`` ones are given up."""

    @property
    def is_open(self) -> bool: ...
    @property
    def pending(self) -> int: ...
    @property
    def unwanted(self) -> int: ...
    def abort(self) -> None: ...
    async def close(self) -> None: ...


C = TypeVar("C", bound=Poolable)


#: Makes a connection to one address, for the principal of the pool; the function is called when it is lost.
Connect: TypeAlias = Callable[[Address, Callable[[], None]], Awaitable[C]]


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Times in seconds. A request waits ``connection_wait`` for a connection while there is none. If a server has not
    answered CONNECT after ``patience``, the next address is tried beside it. An error that ``gives_up`` ends all waits;
    the next attempt comes after a pause that begins with ``first_backoff`` and ends with ``longest_backoff``.

    ``wasting``: for so long a connection may have an answer under way that nobody waits for any more; then it gets no
    more requests, and is closed once nobody waits for it. That frees the request's place at the server: the protocol
    has no other way to take a request back. ``None``: such an answer is awaited.
    """

    connection_wait: float
    patience: float
    first_backoff: float
    longest_backoff: float
    gives_up: Callable[[ClientError], bool] = is_of_identity
    wasting: float | None = None


class ConnectionPool(Generic[C]):
    """At most ``size`` connections; another is opened while each has ``busy`` or more waiting requests.

    A dying connection fails its own requests only, each of which is repeated once over another. While there is none,
    the addresses are tried as ``health`` says, by one attempt after the other for all waiting requests. An identity
    that the brokers refuse is refused here for a while without asking them again.
    """

    def __init__(
        self,
        options: PoolOptions,
        health: AddressHealth,
        places: ConnectionPlaces,
        connect: Connect[C],
        *,
        shown: str,
        size: int,
        busy: int,
        on_loss: Callable[[], None] = lambda: None,
    ) -> None:
        self._options = options
        self._health = health
        self._places = places
        self._make = connect
        self._shown = shown
        self._size = size
        self._busy = busy
        self._on_loss = on_loss
        self._attempts: set[asyncio.Task[C]] = set()
        self._open: list[C] = []
        self._retired: set[C] = set()  # open connections that get no more requests
        self._connecting: asyncio.Task[None] | None = None
        self._reason = "not connected yet"
        self._refused: ClientError | None = None
        self._refusals = 0
        self._refused_until = 0.0
        self._stopped = False
        self._waiting = 0
        self.users = 0
        self.used_at = 0.0  # on the loop's clock

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._open)

    @property
    def problem(self) -> str | None:
        """The reason why there is no connection; ``None`` if there is one."""
        return None if self._usable else self._reason

    @property
    def _usable(self) -> list[C]:
        if not self._retired:
            return self._open
        return [client for client in self._open if client not in self._retired]

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way or waits."""
        return self.users == 0 and self._connecting is None

    def close(self) -> None:
        """Close all connections at once; requests on them fail, and so do all later ones."""
        self._stopped = True
        if self._connecting is not None:
            self._connecting.cancel()
        for client in list(self._open):
            client.abort()  # which forgets it

    async def stop(self) -> None:
        """Close all connections at once, and wait until all sockets are gone."""
        connecting, clients = self._connecting, list(self._open)
        self.close()
        if connecting is not None:
            await asyncio.gather(connecting, return_exceptions=True)
        await asyncio.gather(*self._attempts, return_exceptions=True)
        for client in clients:
            await client.close()

    async def use(self, ask: Callable[[C], Awaitable[T]]) -> T:
        """The result of ``ask`` on a connection. Raises its errors, and :exc:`ClientError` if there is none."""
        self.users += 1
        try:
            for remaining in reversed(range(_TRIES)):
                client = await self._client()
                try:
                    return await ask(client)
                except ConnectionLost:
                    if not remaining or client.is_open:
                        raise
                finally:
                    if client.unwanted or client in self._retired:
                        self._was_given_up(client)
            raise AssertionError("unreachable")
        finally:
            self.users -= 1
            self.used_at = asyncio.get_running_loop().time()
            if self.is_idle:
                self._places.became_idle()

    async def _client(self) -> C:
        """The connection with the least to do, as soon as there is one."""
        if not self._usable:
            await self._first()
        usable = self._usable
        client = min(usable, key=lambda each: each.pending)
        if client.pending >= self._busy and len(usable) < self._size:
            self._grow()
        return client

    def _was_given_up(self, client: C) -> None:
        """Note that nothing waits any more for a request over the connection that has no answer yet."""
        if client in self._retired:
            self._retire(client)
        elif self._options.wasting is not None:
            asyncio.get_running_loop().call_later(self._options.wasting, self._retire, client)

    def _retire(self, client: C) -> None:
        """Send no more requests over a connection with an unwanted answer under way, and close it once possible."""
        if not client.unwanted:
            self._retired.discard(client)
        elif client.is_open:
            self._retired.add(client)
            if not client.pending:
                client.abort()  # which forgets it

    async def _first(self) -> None:
        """Wait until there is a connection, at most as long as a request waits for one."""
        if self._stopped:
            raise ConnectionLost(f"no connection to {self._shown}: it is closed")
        if self._refused is not None and asyncio.get_running_loop().time() < self._refused_until:
            raise self._refused.copy()
        self._waiting += 1
        try:
            async with asyncio.timeout(self._options.connection_wait):
                while not self._usable:
                    if self._connecting is None:
                        self._start(self._until_connected())
                    connecting = self._connecting
                    assert connecting is not None
                    await asyncio.wait([connecting])
                    if self._stopped:
                        raise ConnectionLost(f"no connection to {self._shown}: it is closed")
                    if connecting.cancelled():
                        continue  # with the last one before that waited
                    failed = connecting.exception()
                    if failed is not None:
                        raise failed.copy() if isinstance(failed, ClientError) else failed
        except TimeoutError:
            raise ConnectionLost(f"no connection to {self._shown}: {self._reason}") from None
        finally:
            self._waiting -= 1
            if not self._waiting and not self._usable and self._connecting is not None:
                self._connecting.cancel()

    def _start(self, connecting: Coroutine[Any, Any, None]) -> None:
        self._connecting = asyncio.get_running_loop().create_task(connecting)
        self._connecting.add_done_callback(self._connected)

    def _connected(self, task: asyncio.Task[None]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # nobody may wait for it any more
        if self.is_idle:
            self._places.became_idle()

    def _grow(self) -> None:
        if self._connecting is None and not self._stopped:
            self._start(self._one_more())

    async def _one_more(self) -> None:
        """Open one more connection, if there is a place; a failure changes nothing."""
        addresses = self._health.order()
        if not addresses or not self._places.take_spare():
            return
        client: C | None = None
        try:
            client = await self._attempt(addresses[0])
        except ClientError as failed:
            self._reason = str(failed)
        finally:
            self._end_attempt(client)

    async def _until_connected(self) -> None:
        """Make one attempt after the other until one succeeds; cancelled when nobody waits any more."""
        reason, self._reason = self._reason, self._places.reason
        await self._places.take()
        self._reason = reason
        client: C | None = None
        try:
            while client is None:
                await self._health.until_due()
                try:
                    client = await self._any_of(self._health.order())
                except ClientError as failed:
                    self._reason = str(failed)
                    if self._options.gives_up(failed):
                        self._remember(failed)
                        raise
            self._refused, self._refusals = None, 0
        finally:
            self._end_attempt(client)

    def _end_attempt(self, client: C | None) -> None:
        """Give the taken place to the connection, or free it."""
        if client is not None and self._stopped:
            client.abort()
        if client is not None and client.is_open:
            self._open.append(client)
        else:
            self._places.give_back()

    async def _any_of(self, addresses: list[Address]) -> C | None:
        """A connection to the first address that answers. If an address has not answered after ``options.patience``
        seconds, the next one is tried beside it. ``None`` if there is no address to try now.
        """
        left = list(addresses)
        running: set[asyncio.Task[C]] = set()
        failure: ClientError | None = None
        try:
            while left or running:
                if left:
                    task = asyncio.get_running_loop().create_task(self._attempt(left.pop(0)))
                    self._attempts.add(task)
                    task.add_done_callback(self._attempts.discard)
                    running.add(task)
                patience = self._options.patience if left else None
                done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    running.discard(task)
                    failed = task.exception()
                    if failed is None:
                        running |= done - {task}
                        return task.result()
                    if not isinstance(failed, ClientError) or is_of_identity(failed):
                        raise failed  # every broker of the cluster decides alike about an identity
                    if failure is None or not self._options.gives_up(failed):
                        failure = failed
        finally:
            for task in running:
                task.cancel()
                task.add_done_callback(_close_late)
        if failure is not None:
            raise failure
        return None

    async def _attempt(self, address: Address) -> C:
        try:
            client = await self._make(address, self._lost)
        except ClientError as failed:
            if not is_of_identity(failed):
                self._health.failed(address, str(failed))
            raise
        self._health.succeeded(address)
        return client

    def _lost(self) -> None:
        """Forget a connection that is no longer open."""
        still = [client for client in self._open if client.is_open]
        gone = len(self._open) - len(still)
        self._open = still
        self._retired.intersection_update(still)
        for _ in range(gone):
            self._reason = "the connection was lost"
            if not self._stopped:
                self._on_loss()
            self._places.give_back()

    def _remember(self, refused: ClientError) -> None:
        self._refused = refused
        self._refusals += 1
        pause = backoff(self._refusals, self._options.first_backoff, self._options.longest_backoff)
        self._refused_until = asyncio.get_running_loop().time() + pause


def _close_late(task: asyncio.Task[Any]) -> None:
    """Close the connection of an attempt that is no longer needed: another one was faster, or nobody waits."""
    if not task.cancelled() and task.exception() is None:
        task.result().abort()
