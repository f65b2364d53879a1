"""A lookup service that is asked over Pulsar's protocol: its connections, opened and replaced as needed."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from broker_core.client.client_errors import ConnectionLost, UnexpectedAnswer, is_passing
from broker_core.client.client_tls import ClientTls
from broker_core.client.failover import AddressHealth, ConnectionPlaces, ConnectionPool, PoolOptions
from broker_core.client.pulsar.credentials import Credentials
from broker_core.client.pulsar.lookup_session import BrokerAddress, LookupSession, WatchReceiver, broker_of
from broker_core.client.pulsar.redirects import follow_redirects
from broker_core.client.pulsar.service_url import ServiceUrl
from broker_core.client.topic_listing import TopicListing
from broker_core.client.topics_question import TopicsQuestion
from broker_core.service_addresses import Address, shown_address
from broker_core.wire.pulsar import BaseCommand

__all__ = ["PulsarService"]

T = TypeVar("T")

_FIRST_BACKOFF: Final = 0.1  # seconds
_LONGEST_BACKOFF: Final = 2.0
_PATIENCE: Final = 1.0
_WASTING: Final = 0.2
_LARGE: Final = 64 * 1024  # bytes of an answer, whose names are a column
_MOST_BROKERS: Final = 64  # that redirects named
#: Seconds. A caller gives up by itself, which cancels the request.
_NEVER: Final = 1e9


class PulsarService:
    """A lookup service over Pulsar's protocol.

    Methods wait for an answer or an error, without a time-out of their own; they raise
    :exc:`~broker_core.client.ClientError`. One connection serves all requests to the service URL; brokers of redirects
    have one each while they are asked.
    """

    def __init__(
        self,
        service_url: str,
        *,
        client_version: str | None,
        credentials: Credentials | None,
        tls: ClientTls | None,
        connect_timeout: float,
        keep_alive: float,
        max_answer: int,
    ) -> None:
        """``max_answer`` bounds a frame, in bytes."""
        self.url: Final = ServiceUrl.parse(service_url)
        self._session = partial(
            LookupSession,
            client_version=client_version,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            max_frame=max_answer,
            tls=tls,
            credentials=credentials,
        )
        self._options = PoolOptions(
            connection_wait=_NEVER,
            patience=_PATIENCE,
            first_backoff=_FIRST_BACKOFF,
            longest_backoff=_LONGEST_BACKOFF,
            gives_up=lambda failed: not is_passing(failed),
            wasting=_WASTING,
        )
        self._places = ConnectionPlaces(1 + _MOST_BROKERS)
        self._places.evictors.append(self._evict)
        self._service = self._pool(self.url)
        #: The connections to brokers that redirects named, the least recently used first.
        self._brokers: OrderedDict[str, ConnectionPool[LookupSession]] = OrderedDict()
        self._is_closed = False

    @property
    def problem(self) -> str | None:
        """The reason why there is no connection to the service URL; ``None`` if there is one."""
        return self._service.problem

    async def topics(self, question: TopicsQuestion) -> TopicListing:
        """The names of the topics."""
        answer = await self._service.use(
            lambda session: session.get_topics(
                str(question.namespace),
                question.mode,
                question.pattern,
                question.topics_hash,
                dict(question.properties),
                timeout=_NEVER,
            )
        )
        names = answer.topics if answer.size <= _LARGE else await asyncio.to_thread(answer.column)
        return await question.listing(
            names,
            filtered=answer.filtered,
            changed=answer.changed,
            topics_hash=answer.topics_hash,
            warnings=answer.warnings,
        )

    async def watch(self, namespace: str, pattern: str, watcher: WatchReceiver) -> bool:
        """Watch the topics of a pattern until the connection is lost; false if the server offers no such watch."""
        return await self._service.use(
            lambda session: session.watch(namespace, pattern, watcher, timeout=_NEVER)
        )

    async def partitions(self, topic: str, *, auto_create: bool) -> int:
        """The number of partitions of a topic."""
        return await self._service.use(
            lambda session: session.partitioned_metadata(topic, auto_create, timeout=_NEVER)
        )

    async def broker(self, topic: str, *, listener_name: str | None) -> BrokerAddress:
        """The broker that serves a topic; redirects are followed."""

        async def send(address: str | None, authoritative: bool | None) -> BaseCommand:
            return await self._use(
                address,
                lambda session: session.look_up(
                    topic, authoritative=bool(authoritative), listener_name=listener_name, timeout=_NEVER
                ),
            )

        try:
            answer = await follow_redirects(send, is_tls=self.url.is_tls)
        except UnexpectedAnswer as bad:
            raise UnexpectedAnswer(f"the lookup of {topic} at {self.url}: {bad}") from None
        return broker_of(answer, self.url)

    async def close(self) -> None:
        """Close all connections; requests on them fail."""
        self._is_closed = True
        pools = [self._service, *self._brokers.values()]
        self._brokers.clear()
        await asyncio.gather(*(pool.stop() for pool in pools))

    async def _use(self, address: str | None, ask: Callable[[LookupSession], Awaitable[T]]) -> T:
        if address is None:
            return await self._service.use(ask)
        if self._is_closed:
            raise ConnectionLost(f"the client of {self.url} is closed")
        pool = self._brokers.get(address)
        if pool is None:
            if len(self._brokers) >= _MOST_BROKERS:
                self._evict()
            pool = self._brokers[address] = self._pool(ServiceUrl.parse(address))
        self._brokers.move_to_end(address)
        return await pool.use(ask)

    def _evict(self) -> bool:
        """Close the connections to the broker that was not asked for the longest time."""
        for address, pool in self._brokers.items():
            if pool.is_idle:
                del self._brokers[address]
                pool.close()
                return True
        return False

    def _pool(self, url: ServiceUrl) -> ConnectionPool[LookupSession]:
        async def connect(address: Address, on_lost: Callable[[], None]) -> LookupSession:
            session = self._session(
                f"pulsar{'+ssl' if url.is_tls else ''}://{shown_address(address)}", on_lost=on_lost
            )
            await session.connect()
            return session

        health = AddressHealth(url.addresses, first_backoff=_FIRST_BACKOFF, longest_backoff=_LONGEST_BACKOFF)
        return ConnectionPool(self._options, health, self._places, connect, shown=str(url), size=1, busy=1)
