"""The connections to a Kafka cluster: opened when needed, chosen by the question, opened again when lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from broker_core.client.client_errors import ClientError, ConnectionLost
from broker_core.client.kafka.cluster import Cluster
from broker_core.client.kafka.kafka_errors import NotControllerException, raise_for
from broker_core.client.kafka.node_connection import NodeConnection
from broker_core.concurrency import TasksByKey, ended_within
from broker_core.service_addresses import Address
from broker_core.wire.kafka import METADATA

__all__ = ["ClusterConnections"]

T = TypeVar("T")
#: Addresses that are named if none of them can be reached.
_NAMED: Final = 4


class ClusterConnections:
    """Connections of a client to the nodes, one for each address, shared by its operations.

    Nodes are reached by the addresses that the cluster advertises; if none of them can be reached, the bootstrap
    addresses are tried again. Those that are ``avoided`` at the moment come last if any node will do. All
    methods raise :exc:`~broker_core.client.ClientError`.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        open_one: Callable[[Address], Awaitable[NodeConnection]],
        avoided: Collection[Address] = (),
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._open_one = open_one
        self._avoided = avoided
        self._open: dict[Address, NodeConnection] = {}
        self._opening: TasksByKey[NodeConnection] = TasksByKey()
        #: Connections that get no more requests, and may still have to answer.
        self._former: list[NodeConnection] = []
        #: Addresses whose last connection could not be opened, the latest last.
        self._failed: dict[Address, None] = {}
        self._cluster: Cluster | None = None
        self._learning: TasksByKey[Cluster] = TasksByKey()
        self._closed = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    async def wait(self, seconds: float) -> None:
        """Pause, until the client is closed at the latest."""
        await ended_within(seconds, self._closed.wait())

    # ---- connections ---------------------------------------------------------------------------------------

    async def any_node(self) -> NodeConnection:
        """The open connection with the fewest requests under way, or else the first that can be opened."""
        ready = [
            connection
            for address, connection in self._open.items()
            if connection.is_usable and address not in self._avoided
        ]
        if ready:
            # A random one of equals: else a node that knows nothing new would be asked for ever.
            return min(ready, key=lambda connection: (connection.under_way, random.random()))  # noqa: S311
        lost: dict[str, ConnectionLost] = {}
        for address in self._order():
            try:
                return await self._connection(address)
            except ConnectionLost as failed:
                lost[str(failed)] = failed
        texts = list(lost)
        if len(texts) > 1 and {type(each) for each in lost.values()} == {ConnectionLost}:
            more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
            raise ConnectionLost("; ".join(texts[:_NAMED]) + more) from lost[texts[-1]]
        raise lost[texts[-1]]  # there is one bootstrap address at least

    async def controller(self) -> NodeConnection:
        """The connection to the controller."""
        cluster = await self.cluster()
        node = cluster.nodes.get(cluster.controller_id)
        if node is None:
            self.forget()
            raise NotControllerException("the cluster has no controller at the moment")
        return await self._of_cluster(node.address)

    async def node(self, node_id: int) -> NodeConnection:
        """The connection to a node by its id."""
        node = (await self.cluster()).nodes.get(node_id)
        if node is None:
            self.forget()
            raise ConnectionLost(f"the cluster has no node {node_id}")
        return await self._of_cluster(node.address)

    async def _of_cluster(self, address: Address) -> NodeConnection:
        try:
            return await self._connection(address)
        except ConnectionLost:
            self.forget()  # it may have moved
            raise

    async def _connection(self, address: Address) -> NodeConnection:
        if self.is_closed:
            raise ConnectionLost("the client is closed")
        connection = self._open.get(address)
        if connection is not None and connection.is_usable:
            return connection
        return await self._of_all(self._opening.result(address, partial(self._opened, address)))

    async def _opened(self, address: Address) -> NodeConnection:
        self._failed.pop(address, None)
        try:
            connection = await self._open_one(address)
        except ClientError:
            self._failed[address] = None
            raise
        former, self._open[address] = self._open.get(address), connection
        if former is not None:
            self._former.append(former)
        for each in [each for each in self._former if not each.under_way]:
            self._former.remove(each)
            await each.close()
        return connection

    async def _of_all(self, shared: Awaitable[T]) -> T:
        """The result of a task that several callers share, and :meth:`close` cancels."""
        try:
            return await shared
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if self.is_closed and waiting is not None and not waiting.cancelling():
                raise ConnectionLost("the client is closed") from None
            raise

    def _order(self) -> list[Address]:
        """Addresses of nodes in any order, then the bootstrap addresses; failed and avoided ones come last."""
        nodes = [] if self._cluster is None else [node.address for node in self._cluster.nodes.values()]
        random.shuffle(nodes)  # spreads clients
        failed = [*self._failed, *(each for each in self._avoided if each not in self._failed)]
        every = dict.fromkeys([*nodes, *self._bootstrap])
        return sorted(every, key=lambda address: failed.index(address) if address in failed else -1)

    # ---- the cluster ---------------------------------------------------------------------------------------

    async def cluster(self) -> Cluster:
        """The nodes and the controller, asked for if they are not known."""
        if self._cluster is None:
            return await self._of_all(self._learning.result(None, self._learned))
        return self._cluster

    def forget(self) -> None:
        """Ask for nodes and controller again when they are needed."""
        self._cluster = None

    def rebootstrap(self) -> None:
        """Begin again with the bootstrap addresses, over new connections."""
        self.forget()
        for connection in self._open.values():
            connection.abort(ConnectionLost("the cluster is looked for again"))

    async def _learned(self) -> Cluster:
        connection = await self.any_node()
        # No topics: of version 0 that would be all of them.
        answer = await connection.ask(METADATA, {"topics": [], "allow_auto_topic_creation": False}, least=1)
        raise_for(answer["error_code"])
        self._cluster = cluster = Cluster.of_metadata(answer)
        return cluster

    # ---- the end -------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close all connections; requests fail, now and later."""
        self._closed.set()
        await asyncio.gather(self._opening.close(), self._learning.close())
        await asyncio.gather(*(each.close() for each in [*self._open.values(), *self._former]))
        self._open.clear()
        self._former.clear()
