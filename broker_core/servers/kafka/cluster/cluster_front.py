"""The Kafka cluster that clients of a gateway see: its nodes at ports of the gateway, asked in each client's name."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final, NamedTuple

from broker_core.access import Asker, Sessions
from broker_core.client import CredentialsFailed
from broker_core.names import NamespaceName
from broker_core.servers.kafka.cluster.node_ports import NodePorts
from broker_core.servers.kafka.pages.answer_page import without_page
from broker_core.servers.kafka.pages.kept_answers import AnswerAhead, KeptAnswers, KeptRequest, WholeAnswer
from broker_core.upstream.kafka import ANY, ClientIdentity, ClusterTopics, KafkaCluster, identity_of
from broker_core.wire.kafka import METADATA, Api, Fields

__all__ = ["ClusterFront", "ItemSize"]

#: The first versions of Metadata with ids of topics by names, and with names by ids.
_WITH_IDS: Final = (10, 13)
_BY_ID: Final = (12, 13)
#: The most seconds for which an answer about the next pages of a request is kept.
_AHEAD: Final = 1.0


class ItemSize(NamedTuple):
    """The units, and the bytes, that a node answers on average for an item of a request."""

    units: float
    size: float


class ClusterFront:
    """The cluster, its nodes at their ports, and the credentials for it.

    ``namespace`` has the cluster's topics. ``sessions`` has the credentials of clients, if the cluster is asked with
    them; ``None``: with the gateway's own. ``max_age``: the greatest age in seconds of an answer that pages are made
    of. ``topics`` gives the newest topics that a client may see.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        namespace: NamespaceName,
        ports: NodePorts,
        sessions: Sessions | None = None,
        *,
        max_age: float = 10.0,
        topics: Callable[[Asker], Awaitable[ClusterTopics]] | None = None,
    ) -> None:
        self.cluster = cluster
        #: The answers that later pages of a pass are made of.
        self.answers = KeptAnswers[WholeAnswer](max_age)
        #: The request that a client asks page by page, by its connection.
        self.requests = KeptAnswers[KeptRequest](max_age)
        #: The answer about the next pages of that request, by the connection of the client.
        self.aheads = KeptAnswers[AnswerAhead](min(max_age, _AHEAD))
        #: The size of an item that a page asked for last, by API.
        self.item_sizes: dict[Api, ItemSize] = {}
        self.namespace = namespace
        self.ports = ports
        self._sessions = sessions
        self._topics = topics
        cluster.on_nodes.append(self._fit)

    def keep(self, max_age: float) -> None:
        """Keep answers for later pages for ``max_age`` seconds from now on, and drop the present ones."""
        self.answers.max_age = self.requests.max_age = max_age
        self.aheads.max_age = min(max_age, _AHEAD)
        self.forget()

    def forget(self) -> None:
        """Drop all answers for later pages: memory is short, or this is the end."""
        self.changed()
        self.requests.clear()

    def changed(self) -> None:
        """Use no kept answer for later pages any more, since the cluster was changed."""
        self.answers.clear()
        self.aheads.clear()

    def kept_request(self, asker: Asker, rows: object) -> KeptRequest | None:
        """The kept request of a client that has these rows."""
        kept = self.requests.get(asker.connection)
        return kept if kept is not None and kept.rows is rows else None

    @property
    def forwards(self) -> bool:
        """Whether the cluster is asked with the credentials of clients."""
        return self._sessions is not None

    @property
    def name(self) -> str:
        """The name of the cluster for clients."""
        nodes = self.cluster.nodes
        return (
            "a Kafka cluster"
            if nodes is None or not nodes.cluster_id
            else f"the Kafka cluster {nodes.cluster_id}"
        )

    @property
    def node_ids(self) -> list[int]:
        """The ids of the known nodes, also of one that only some nodes name so far."""
        nodes = () if self.cluster.nodes is None else self.cluster.nodes.nodes
        return sorted({*nodes, *self.cluster.announced})

    def identity(self, asker: Asker) -> ClientIdentity | None:
        """The identity by which the cluster is asked for a client; ``None``: the gateway's own.

        Raises :exc:`~broker_core.client.CredentialsFailed` if there are no credentials of the client to pass on.
        """
        if self._sessions is None:
            return None
        credentials = self._sessions.of(asker)
        if credentials is None:
            raise CredentialsFailed("there are no credentials of this client to ask the cluster with")
        return identity_of(credentials)

    def question(self, asker: Asker, node: int | None, api: Api, version: int, body: Fields) -> Hashable:
        """The key of the answers to a request that are the same for all of its pages: in whose name a node is asked,
        which one, and for what. Raises :exc:`~broker_core.client.CredentialsFailed`.
        """
        identity = self.identity(asker)
        return (
            asker.role,
            None if identity is None else identity.key,
            node,
            api.key,
            version,
            repr(without_page(body)),
        )

    async def topics(self, asker: Asker) -> ClusterTopics | None:
        """The topics of the newest snapshot. Raises :exc:`~broker_core.errors.ListingFailed`."""
        return None if self._topics is None else await self._topics(asker)

    async def topic_id(self, asker: Asker, name: str) -> uuid.UUID:
        """The id that a topic has now at a node; the zero id if the node gives none.

        Raises :exc:`~broker_core.client.ClientError`.
        """
        (row,) = await self._described(asker, [{"name": name}], _WITH_IDS)
        found: uuid.UUID = row["topic_id"]
        return found

    async def topic_names(self, asker: Asker, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
        """The names of topics by their ids, from the snapshot and else from a node, if there are such topics.

        Raises :exc:`~broker_core.errors.ListingFailed` and :exc:`~broker_core.client.ClientError`.
        """
        topics, wanted = await self.topics(asker), set(ids)
        found = {} if topics is None else topics.names_of(wanted)
        new = wanted - found.keys()
        if new:
            rows = await self._described(asker, [{"topic_id": each, "name": None} for each in new], _BY_ID)
            found |= {row["topic_id"]: row["name"] for row in rows if row["name"]}
        return found

    async def _described(self, asker: Asker, topics: list[Fields], versions: tuple[int, int]) -> list[Fields]:
        body = {"topics": topics, "allow_auto_topic_creation": False}
        answer = await self.cluster.request(ANY, METADATA, versions, body, self.identity(asker))
        rows: list[Fields] = answer["topics"]
        return rows

    async def _fit(self, nodes: list[int]) -> None:
        await self.ports.fit(nodes)
