"""A Kafka cluster as a store of topics, the source of live snapshots.

Kafka reports no deltas, so all topics are read each time, by one request for Metadata. An answer with the bytes of the
one before costs nothing more.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

import pyarrow as pa
import structlog

from broker_core.access import Asker, Sessions
from broker_core.client import ClientError, ConnectionLost
from broker_core.client.kafka import KafkaException, ReadAnswer
from broker_core.concurrency import in_thread
from broker_core.errors import Cause, ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.upstream.kafka.client_identity import ClientIdentity, identity_of
from broker_core.upstream.kafka.cluster_topics import ClusterTopics
from broker_core.upstream.kafka.kafka_cluster import CONTROLLER, KafkaCluster
from broker_core.upstream.kafka.list_invalidation import UnshownChanges
from broker_core.upstream.snapshots import StoreListing, UpdateReceiver, View
from broker_core.wire.kafka import CREATE_TOPICS, DELETE_TOPICS, METADATA, Api, ErrorCode, Fields, error_name
from broker_core.wire.kafka.topic_fragments import PlacedAnswer, read_placed_answer

__all__ = ["KafkaTopicStore"]

_log = structlog.get_logger(__name__)

#: Seconds that a listing has.
_LISTING: Final = 25.0
#: The first version of Metadata with ids of topics, and the last one that is read here.
_VERSIONS: Final = (10, 12)
_ALL: Final[Fields] = {"topics": None, "allow_auto_topic_creation": False}
#: Listings of one view that are kept: the current one, and the one that is about to take its place.
_KEPT: Final = 2
#: Milliseconds that the controller has for a change.
_CHANGE_MS: Final = 15_000
#: The version of DeleteTopics from which on topics are rows.
_ROWS: Final = 6
#: Codes of refused clients: TOPIC_, GROUP_, CLUSTER_AUTHORIZATION_FAILED and SASL_AUTHENTICATION_FAILED.
_DENIED: Final = frozenset({29, 30, 31, 58})
_CAUSES: Final[Mapping[int, Cause]] = {
    **dict.fromkeys((3, 100), Cause.NOT_FOUND),
    36: Cause.CONFLICT,
    **dict.fromkeys(_DENIED, Cause.DENIED),
    **dict.fromkeys((17, 37, 38, 39, 40, 42, 44), Cause.BAD_REQUEST),
}


class KafkaTopicStore:
    """Lists for each client by its own credentials, which are in ``sessions``; without any, for all clients by the
    gateway's.

    Only one namespace has topics, all persistent.
    """

    has_verdicts: Final = False

    def __init__(
        self, cluster: KafkaCluster, namespace: NamespaceName, sessions: Sessions | None = None
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._sessions = sessions
        self.lists_for_all: Final = sessions is None
        self._topics: dict[View, OrderedDict[str, ClusterTopics]] = {}
        #: The changes through this gateway that nodes may not show yet: such a node is asked for no listing.
        self.unshown: Final = UnshownChanges()
        #: How often all topics were read.
        self.listings = 0

    def view_of(self, asker: Asker) -> View:
        """The client for which the cluster is asked; ``None`` is the gateway itself."""
        if self._sessions is None:
            return None
        view = (asker.role, asker.original_principal)
        if not self._sessions.has_any(*view):
            raise _no_credentials()
        return view

    def topics_of(self, view: View, topics_hash: str | None) -> ClusterTopics | None:
        """The newest topics with this hash."""
        kept = self._topics.get(view)
        return None if topics_hash is None or kept is None else kept.get(topics_hash)

    def let_go(self, view: View) -> None:
        """Keep the topics of a view no longer."""
        self._topics.pop(view, None)

    async def list(
        self,
        view: View,
        namespace: NamespaceName,
        mode: Mode,
        known_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
    ) -> StoreListing:
        """The names of all partitions, by Metadata for all topics of one node."""
        if mode is Mode.NON_PERSISTENT or namespace != self._namespace:
            return StoreListing(pa.array([], pa.large_string()), None)
        with _cluster_failures():
            async with asyncio.timeout(_LISTING):
                return await self._listed(view, known_hash, admit)

    async def _listed(
        self, view: View, known_hash: str | None, admit: Callable[[int], Awaitable[None]]
    ) -> StoreListing:
        identity = self._identity(view)
        kept = self._topics.setdefault(view, OrderedDict())
        former = next(reversed(kept.values()), None)
        self.listings += 1
        digest = None if former is None else former.digest
        answer = await self._of_some_node(identity, admit, partial(read_placed_answer, digest))
        read: PlacedAnswer = answer["topics"]
        topics = former
        if read.topics is not None:
            make = partial(ClusterTopics.of, self._namespace, read.topics, read.digest, former)
            topics = await in_thread(view, make)
        assert topics is not None
        if former is None or not topics.left_out.equals(former.left_out):
            _report_left_out(topics)
        topics_hash = await in_thread(view, lambda: topics.hash)
        kept[topics_hash] = topics
        kept.move_to_end(topics_hash)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
        if topics_hash == known_hash:
            return StoreListing(None, topics_hash)
        names = await in_thread(view, topics.names)
        return StoreListing(names, topics_hash, names.nbytes)

    async def _of_some_node(
        self, identity: ClientIdentity | None, admit: Callable[[int], Awaitable[None]], read: ReadAnswer
    ) -> Fields:
        """All topics, from one of the nodes that can be reached."""
        cluster = self._cluster.nodes or await self._cluster.refresh()
        last = ConnectionLost("the cluster has no nodes")
        for node in self._cluster.in_turn(cluster):
            try:
                await self.unshown.wait(
                    partial(self._cluster.request, node, METADATA, None, identity=identity)
                )
                return await self._cluster.request(
                    node, METADATA, _VERSIONS, _ALL, identity, hold=admit, read=read
                )
            except ConnectionLost as failed:
                last = failed
        raise last

    async def topic(self, asker: Asker, name: str) -> tuple[uuid.UUID, int] | None:
        """The id of a topic and its number of partitions, by the controller; ``None`` for no such topic."""
        body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        (row,) = (await self._decided(asker, METADATA, body))["topics"]
        if row["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        _check(row)
        return row["topic_id"], len(row["partitions"])

    async def create(
        self, asker: Asker, name: str, partitions: int, replication: int | None, configs: Mapping[str, str]
    ) -> tuple[uuid.UUID | None, int]:
        """Create a topic; returns its id, if the cluster gives it, and its number of partitions.

        No ``partitions`` and no ``replication`` leave them to the cluster.
        """
        topic = {
            "name": name,
            "num_partitions": partitions or -1,
            "replication_factor": replication or -1,
            "assignments": [],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        body = {"topics": [topic], "timeout_ms": _CHANGE_MS, "validate_only": False}
        (row,) = (await self._decided(asker, CREATE_TOPICS, body, again=False))["topics"]
        _check(row)
        return row.get("topic_id"), max(row.get("num_partitions", -1), partitions, 1)

    async def delete(self, asker: Asker, topic_id: uuid.UUID) -> None:
        """Delete a topic, and no other one that may have its name by now."""
        body = {"topics": [{"name": None, "topic_id": topic_id}], "timeout_ms": _CHANGE_MS}
        answer = await self._decided(asker, DELETE_TOPICS, body, again=False, versions=(_ROWS, _ROWS))
        (row,) = answer["responses"]
        _check(row)

    async def _decided(
        self,
        asker: Asker,
        api: Api,
        body: Fields,
        *,
        again: bool = True,
        versions: tuple[int, int] | None = None,
    ) -> Fields:
        """The answer of the controller to a client. Raises :exc:`ListingFailed`."""
        with _cluster_failures():
            identity = self._identity(self.view_of(asker))
            return await self._cluster.request(CONTROLLER, api, versions, body, identity, again=again)

    def _identity(self, view: View) -> ClientIdentity | None:
        if self._sessions is None:
            return None
        assert isinstance(view, tuple)
        credentials = self._sessions.any_of(*view)
        if credentials is None:
            raise _no_credentials()
        return identity_of(credentials)

    async def watch(self, view: View, namespace: NamespaceName, watcher: UpdateReceiver) -> bool:  # noqa: ARG002
        """False: Kafka reports no changes."""
        return False

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        """Do nothing: the listing of a client lacks what it may not see."""


def _report_left_out(topics: ClusterTopics) -> None:
    left_out = topics.left_out_text()
    if left_out:
        _log.warning(
            "topics of the Kafka cluster are left out of listings: their names are those of partitions, or of "
            "system topics",
            namespace=str(topics.namespace),
            topics=left_out,
        )


def _no_credentials() -> ListingFailed:
    return ListingFailed(
        "There are no credentials of this client to ask the Kafka cluster with", cause=Cause.DENIED
    )


def _check(row: Fields) -> None:
    """Raise :exc:`ListingFailed` for a row with an error."""
    code: int = row["error_code"]
    if code:
        text = row.get("error_message") or f"The Kafka cluster answers {error_name(code)}"
        raise ListingFailed(text, cause=_CAUSES.get(code, Cause.UPSTREAM), reason="upstream")


@contextmanager
def _cluster_failures() -> Iterator[None]:
    """Raise :exc:`ListingFailed` for questions that the cluster did not answer."""
    try:
        yield
    except TimeoutError:
        raise ListingFailed(
            "The Kafka cluster behind this server did not answer in time",
            cause=Cause.UPSTREAM,
            reason="upstream",
        ) from None
    except KafkaException as refused:
        is_denied = refused.code in _DENIED
        raise ListingFailed(
            f"The Kafka cluster behind this server refuses: {refused}",
            cause=Cause.DENIED if is_denied else Cause.UPSTREAM,
            reason="denied" if is_denied else "upstream",
        ) from None
    except ClientError as failed:
        # Clients learn no address of a node from it.
        _log.warning("the Kafka cluster was not asked", reason=str(failed))
        raise ListingFailed(
            "Cannot ask the Kafka cluster behind this server; its log says why",
            cause=Cause.UPSTREAM,
            reason="upstream",
        ) from None
