"""A Kafka cluster behind a gateway: its nodes, kept up to date, and requests to each, for clients or for the gateway.

Each request has the connections of one principal for itself, so that none waits for another's long one. They are kept
for the principal's next request, for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import structlog

from broker_core.client import ClientError, ClientTls, ConnectionLost, ConnectTimeout
from broker_core.client.kafka import (
    Cluster,
    ClusterConnections,
    ConnectionOptions,
    Hold,
    KafkaException,
    NodeConnection,
    NodeSilent,
    ReadAnswer,
    Sasl,
    raise_for,
)
from broker_core.concurrency import FairPlaces, TasksByKey
from broker_core.service_addresses import Address
from broker_core.upstream.kafka.client_identity import ClientIdentity
from broker_core.upstream.kafka.list_invalidation import ChangedTopics, changed_topics
from broker_core.wire.kafka import (
    FIND_COORDINATOR,
    METADATA,
    Api,
    ErrorCode,
    Fields,
    RawRows,
    read_response,
    response_frame,
)

__all__ = ["ANY", "CONTROLLER", "AnswerLost", "ClusterOptions", "Coordinator", "KafkaCluster", "Target"]

_Answer = TypeVar("_Answer")
_log = structlog.get_logger(__name__)

#: The body of Metadata if only nodes are wanted: no topics.
_NODES: Final[Mapping[str, Any]] = {"topics": [], "allow_auto_topic_creation": False}
#: The text before the addresses of a connection in errors: Kafka quotes the request that it refuses.
_CONNECTION: Final = "connectionId="
#: Bytes of the length in front of a message.
_LENGTH: Final = 4
#: The first version of FindCoordinator with several keys.
_SEVERAL: Final = 4


class _Anywhere(Enum):
    ANY = auto()
    CONTROLLER = auto()


#: Any node: each knows the answer, or hands the request on.
ANY: Final = _Anywhere.ANY
#: The node that the cluster calls its controller.
CONTROLLER: Final = _Anywhere.CONTROLLER


class Coordinator(NamedTuple):
    """The node that keeps a group (``kind`` 0) or a transactional id (1)."""

    key: str
    kind: int = 0


#: The node that a request goes to; a number is its id.
Target: TypeAlias = "int | _Anywhere | Coordinator"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Times in seconds, sizes in bytes. A node has ``request_timeout`` to answer a question, and ``change_timeout`` to
    make a change. At most ``places`` requests are under way at a time; connections without one
    are closed after ``idle``. The nodes are looked for every ``look`` seconds.
    """

    bootstrap: Sequence[Address]
    tls: ClientTls | None = None
    #: The gateway's own credentials.
    sasl: Sasl | None = field(default=None, repr=False)
    places: int = 32
    connect_timeout: float = 5.0
    request_timeout: float = 10.0
    change_timeout: float = 20.0
    idle: float = 60.0
    look: float = 5.0
    max_answer: int = 256 * 1024 * 1024


@dataclass(slots=True)
class _Idle:
    principal: str
    connections: ClusterConnections
    since: float


class AnswerLost(ConnectionLost):
    """The connection broke, or no answer came in time, after a node was asked: whether it did it is not known."""


class KafkaCluster:
    """One cluster. ``on_nodes`` are awaited with the ids of present and recent nodes, if they differ from the ones
    before. ``on_change`` are called after each request that may have changed something, and ``on_write`` if it may have
    been topics or ACLs.
    """

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self.nodes: Cluster | None = None
        #: The reason why the nodes could not be asked at the last look.
        self.problem: str | None = "its nodes were not asked yet"
        #: The versions of APIs, from and to, that a node has, by key; empty as long as none has answered.
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.on_nodes: Final[list[Callable[[list[int]], Awaitable[None]]]] = []
        self.on_change: Final[list[Callable[[], None]]] = []
        self.on_write: Final[list[Callable[[ChangedTopics], None]]] = []
        self._places = FairPlaces(options.places)
        self._idle: list[_Idle] = []
        self._busy: set[ClusterConnections] = set()
        #: The connections of former options.
        self._former: set[ClusterConnections] = set()
        #: The nodes that did not answer in time, with the times: any other is asked before them.
        self._silent: dict[Address, float] = {}
        self._looks_under_way: TasksByKey[Cluster] = TasksByKey()
        #: The ids of present and recent nodes, which ``on_nodes`` know.
        self.announced: frozenset[int] = frozenset()
        #: The number of looks until now, and by the id of a node that number when it was last named.
        self._looks = 0
        self._named: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    async def start(self, within: float = 5.0) -> None:
        """Look for the nodes for up to ``within`` seconds; a cluster that does not answer is looked for again later."""
        try:
            async with asyncio.timeout(within):
                await self.refresh()
        except (ClientError, TimeoutError) as failed:
            _log.warning("the Kafka cluster does not answer", reason=str(failed) or "no answer in time")
        task = asyncio.create_task(self._look(), name="nodes of the Kafka cluster")
        self._tasks.add(task)

    async def stop(self) -> None:
        """Close all connections; requests under way fail."""
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, self._looks_under_way.close(), return_exceptions=True)
        idle, self._idle = self._idle, []
        await asyncio.gather(*(each.close() for each in [*self._busy, *(row.connections for row in idle)]))

    def use(self, options: ClusterOptions) -> None:
        """Use other addresses and credentials from now on; requests under way end over the former connections.

        What was listed before is not given any more: other credentials may see other topics.
        """
        self.options = options
        self._former |= self._busy
        idle, self._idle = self._idle, []
        for row in idle:
            task = asyncio.create_task(row.connections.close())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._wrote({})

    def _wrote(self, changed: ChangedTopics | None) -> None:
        if changed is not None:
            for hook in self.on_write:
                hook(changed)

    # ---- nodes ---------------------------------------------------------------------------------------------

    async def refresh(self) -> Cluster:
        """The nodes that a node names now. Raises :exc:`~broker_core.client.ClientError`."""
        return await self._looks_under_way.result(None, self._looked)

    async def name(self, nodes: Collection[int]) -> None:
        """Add nodes that a client has just seen, and wait until the hooks know them.

        The node of a look may not know all of them. They are looked at if they are new, for all clients: the end of one
        leaves no hook half done. Returns at once if the cluster does not answer.
        """
        self._named |= dict.fromkeys(nodes, self._looks)
        for _ in range(2):  # a look that has begun already may not tell the hooks of them
            if self.announced.issuperset(nodes):
                return
            try:
                await self.refresh()
            except ClientError:
                return

    async def _looked(self) -> Cluster:
        try:
            value = await self.request(ANY, METADATA, None, _NODES)
            raise_for(value["error_code"])
            cluster = Cluster.of_metadata(value)
            if cluster.nodes:
                self.nodes = cluster
                await self._announce(cluster.nodes)
        except Exception as failed:
            self.problem = str(failed)
            raise
        self.problem = None
        return cluster

    async def _announce(self, nodes: Collection[int]) -> None:
        """Call the hooks if the present and recent nodes are others than before."""
        self._named |= dict.fromkeys(nodes, self._looks)
        # A node that lags after a restart does not name all: a node is gone if two looks in turn did not name it.
        self._named = {node: at for node, at in self._named.items() if at == self._looks}
        if self._named.keys() != self.announced:
            named = sorted(self._named)
            for hook in self.on_nodes:
                await hook(named)
            self.announced = frozenset(named)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self.options.look)
            before = self.problem
            with contextlib.suppress(ClientError):
                await self.refresh()
                self._looks += 1
            if (before is None) != (self.problem is None):
                message = "the Kafka cluster answers" if before else "the Kafka cluster does not answer"
                _log.warning(message, reason=self.problem)
            long_ago = loop.time() - self.options.idle
            for address in [address for address, since in self._silent.items() if since < long_ago]:
                del self._silent[address]
            for row in [row for row in self._idle if row.since < long_ago]:
                self._idle.remove(row)
                await row.connections.close()

    # ---- requests ------------------------------------------------------------------------------------------

    async def request(
        self,
        target: Target,
        api: Api,
        version: int | tuple[int, int] | None,
        body: Mapping[str, Any],
        identity: ClientIdentity | None = None,
        *,
        again: bool = True,
        hold: Hold | None = None,
        read: ReadAnswer = read_response,
    ) -> Fields:
        """The answer of a node; ``version`` ``None``: the latest that both sides have, or one of a range. ``identity``
        is the client's, ``None``: the gateway's own.

        ``again`` false: it is not asked again if the connection is lost meanwhile, since a change may have been made.
        Nor is a node that gave no answer in time, unless another one will do.
        ``hold`` is awaited with the size of a large answer before it is read; ``read`` makes the answer of its bytes.
        Raises :exc:`AnswerLost` and other :exc:`~broker_core.client.ClientError`.
        """
        timeout = None if again else self.options.change_timeout
        least, most = version if isinstance(version, tuple) else (version or 0, version)
        is_sent = False

        async def ask(connections: ClusterConnections) -> Fields:
            nonlocal is_sent
            is_sent = False
            connection = await self._connection(connections, target)
            is_sent = True
            answer = await connection.ask(
                api,
                body,
                least=least,
                most=most,
                hold=hold,
                read=partial(_without_addresses, read),
                timeout=timeout,
            )
            if target is CONTROLLER and _is_of_another(answer):
                connections.forget()  # clients try again, and then the new one is asked
            return answer

        def repeats(lost: ConnectionLost) -> bool:
            is_silent = isinstance(lost, ConnectTimeout) or (is_sent and isinstance(lost, NodeSilent))
            return (again or not is_sent) and (target is ANY or not is_silent)

        try:
            answer = await self._twice(identity, ask, repeats)
        except BaseException as failed:
            is_lost = isinstance(failed, ConnectionLost)
            if is_sent or is_lost:  # its result is unknown
                self._wrote(changed_topics(api, body, None))
            if is_sent and is_lost:
                raise AnswerLost(str(failed)) from failed
            raise
        finally:
            if not again:
                for hook in self.on_change:
                    hook()
        self._wrote(changed_topics(api, body, answer))
        return answer

    async def _twice(
        self,
        identity: ClientIdentity | None,
        ask: Callable[[ClusterConnections], Awaitable[_Answer]],
        repeats: Callable[[ConnectionLost], bool] = lambda _: True,
    ) -> _Answer:
        """The answer to a question, which is asked again after a lost connection if it ``repeats``."""
        async with self._connections(identity) as connections:
            try:
                return await ask(connections)
            except ConnectionLost as lost:
                connections.forget()
                if not repeats(lost):
                    raise
            try:
                return await ask(connections)
            except ConnectionLost:
                connections.forget()
                raise

    def in_turn(self, nodes: Cluster) -> list[int]:
        """The ids of nodes in any order, which spreads the work, and last those that gave no answer in time."""
        ids = list(nodes.nodes)
        random.shuffle(ids)
        return sorted(ids, key=lambda each: nodes.nodes[each].address in self._silent)

    async def check(self, identity: ClientIdentity) -> None:
        """Authenticate at a node with credentials, over a new connection.

        Raises :exc:`~broker_core.client.ClientError`.
        """
        async with self._connections(identity, fresh=True) as connections:
            await connections.any_node()

    async def coordinators(
        self, keys: Sequence[str], kind: int, identity: ClientIdentity | None = None
    ) -> dict[str, int]:
        """The nodes that keep groups (``kind`` 0) or transactional ids (1), -1 for those that none keeps now, without
        those that the principal may not look for.

        Raises :exc:`~broker_core.client.ClientError`.
        """
        wanted = list(dict.fromkeys(keys))
        return await self._twice(identity, lambda connections: _coordinators(connections, wanted, kind))

    async def _connection(self, connections: ClusterConnections, target: Target) -> NodeConnection:
        if isinstance(target, Coordinator):
            found = await _coordinators(connections, [target.key], target.kind)
            return await (connections.node(found[target.key]) if found else connections.any_node())
        if isinstance(target, int):
            return await connections.node(target)
        return await (connections.any_node() if target is ANY else connections.controller())

    @asynccontextmanager
    async def _connections(
        self, identity: ClientIdentity | None, *, fresh: bool = False
    ) -> AsyncIterator[ClusterConnections]:
        """The connections of a principal, for one request alone; ``fresh``: new ones."""
        principal = "" if identity is None else identity.key
        async with self._places.place(principal):
            if self._is_stopped:
                raise ConnectionLost("the gateway is stopped")
            row = next((row for row in reversed(self._idle) if row.principal == principal), None)
            if row is not None and not fresh:
                self._idle.remove(row)
                connections = row.connections
            else:
                if len(self._idle) + len(self._busy) >= self.options.places:
                    await self._idle.pop(0).connections.close()
                connections = self._new(identity)
            self._busy.add(connections)
            try:
                yield connections
            except (KafkaException, asyncio.CancelledError):
                # Not let in, or an answer is still to come: the next request does not wait for that.
                await connections.close()
                raise
            finally:
                self._busy.discard(connections)
                if connections in self._former:
                    self._former.discard(connections)
                    await connections.close()
                if not connections.is_closed:
                    now = asyncio.get_running_loop().time()
                    self._idle.append(_Idle(principal, connections, now))

    def _new(self, identity: ClientIdentity | None) -> ClusterConnections:
        options = self.options

        def note_silent(address: Address) -> None:
            self._silent[address] = asyncio.get_running_loop().time()

        of_connection = ConnectionOptions(
            client_id="broker-core-gateway",
            connect_timeout=options.connect_timeout,
            request_timeout=options.request_timeout,
            max_answer=options.max_answer,
            tls=options.tls,
            sasl=options.sasl if identity is None else identity.sasl,
            on_silence=note_silent,
        )

        async def open_one(address: Address) -> NodeConnection:
            connection = await NodeConnection.open(address, of_connection)
            self._silent.pop(address, None)
            self.versions = connection.versions
            return connection

        return ClusterConnections(options.bootstrap, open_one, self._silent)


def _is_of_another(answer: Fields) -> bool:
    """Whether a node says that it is not the controller any more: as a whole, or of the first row as of all."""
    firsts = (rows[0] for rows in answer.values() if isinstance(rows, list) and rows)
    some = (answer, *(row for row in firsts if isinstance(row, dict)))
    return any(row.get("error_code") == ErrorCode.NOT_CONTROLLER for row in some)


def _without_addresses(read: ReadAnswer, api: Api, version: int, message: bytes) -> tuple[int, Fields]:
    """An answer without texts that quote a request and its connection: clients learn no address of a node from them."""
    number, value = read(api, version, message)
    if api is METADATA or _CONNECTION.encode() not in message:  # all topics, and no texts
        return number, value
    _take_out(value)
    cut: Fields = {}
    for name, rows in value.items():
        if isinstance(rows, RawRows):
            some = [rows.one(place) for place in range(len(rows))]
            for place, row in enumerate(some):
                if _CONNECTION.encode() in b"".join(row.pieces):
                    decoded = rows[place]
                    _take_out(decoded)
                    some[place] = api.response_elements(name, [decoded], version)
            cut[name] = rows.mixed(some)
    if cut:
        frame = b"".join(response_frame(api, version, number, value | cut))
        number, value = read(api, version, frame[_LENGTH:])
    return number, value


def _take_out(value: Any) -> None:
    """Put the text of its code in the place of each text of an error that quotes a connection."""
    if isinstance(value, dict):
        if _CONNECTION in (value.get("error_message") or ""):
            value["error_message"] = None
            try:
                raise_for(value.get("error_code", 0))
            except KafkaException as failed:
                value["error_message"] = failed.message
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            _take_out(each)


async def _coordinators(connections: ClusterConnections, keys: Sequence[str], kind: int) -> dict[str, int]:
    """The coordinators of groups or transactional ids, by any node."""
    connection = await connections.any_node()
    if connection.has(FIND_COORDINATOR, least=_SEVERAL):
        bodies = [{"key_type": kind, "coordinator_keys": keys}]
    else:
        bodies = [{"key": key, "key_type": kind} for key in keys]
    found: dict[str, int] = {}
    for body in bodies:
        answer = await connection.ask(FIND_COORDINATOR, body)
        rows = answer["coordinators"] or [{**answer, "key": body.get("key")}]
        for row in rows:
            if row["error_code"] in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                found[row["key"]] = -1 if row["error_code"] else row["node_id"]
    return found
