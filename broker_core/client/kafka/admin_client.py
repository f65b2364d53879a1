"""The admin client: requests to a Kafka cluster, or this server; reconnects and fails over by itself."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, overload

from broker_core.client.client_errors import ConnectionLost
from broker_core.client.client_tls import ClientTls
from broker_core.client.kafka.argument_checks import at_least
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.bootstrap import bootstrap_addresses
from broker_core.client.kafka.calls import partitions as of_partitions
from broker_core.client.kafka.calls.acls import acl_pages, create_acls, delete_acls
from broker_core.client.kafka.calls.configs import config_pages, given_resources, incremental_alter_configs
from broker_core.client.kafka.calls.create_partitions import create_partitions
from broker_core.client.kafka.calls.create_topics import create_topics
from broker_core.client.kafka.calls.delete_topics import delete_by_id, delete_by_name
from broker_core.client.kafka.calls.describe_cluster import ClusterDescription, describe_cluster
from broker_core.client.kafka.calls.describe_topics import describe_by_id, describe_by_name
from broker_core.client.kafka.calls.groups import (
    classic_groups,
    consumer_groups,
    group_offsets,
    listed_groups,
    listed_transactions,
    transactions,
    with_members,
    with_offsets,
)
from broker_core.client.kafka.calls.list_topics import list_topics, topic_pages
from broker_core.client.kafka.cluster_connections import ClusterConnections
from broker_core.client.kafka.configs import AlterConfigOp, Config, ConfigResource
from broker_core.client.kafka.created_topics import CreateTopicsResult
from broker_core.client.kafka.groups import (
    GroupDescription,
    GroupListing,
    OffsetAndMetadata,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from broker_core.client.kafka.logs import PartitionOffset, PartitionReassignment, ProducerState, ReplicaLog
from broker_core.client.kafka.node_connection import ConnectionOptions, NodeConnection
from broker_core.client.kafka.pages import Page, Pager, collected, joined, latest
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.sasl import Sasl
from broker_core.client.kafka.topic_collection import (
    TopicIdCollection,
    TopicNameCollection,
    Topics,
    as_collection,
)
from broker_core.client.kafka.topic_listings import ListTopicsResult, TopicListing
from broker_core.client.kafka.topics import NewPartitions, NewTopic, TopicDescription
from broker_core.client.lookup_client import check_seconds
from broker_core.client.loop_bound import LoopBound
from broker_core.kafka.acls import AclBinding, AclFilter
from broker_core.service_addresses import Address

__all__ = ["MAX_ANSWER", "MAX_PAGE", "AdminClient"]

#: Units of a page.
MAX_PAGE: Final = 2000
#: Bytes of an answer. A million topics with a partition each take about 100 MB.
MAX_ANSWER: Final = 512 * 1024 * 1024


class AdminClient(LoopBound):
    """A client for the administration of a Kafka cluster, or of this server: ``async with AdminClient(bootstrap) as
    client``. It connects when it is asked something, and again when a connection is lost.

    ``bootstrap`` is ``HOST:PORT``, or several with commas between. ``sasl`` has the credentials; ``tls`` the trusted
    certificates, and is needed for a listener with TLS. Times are in seconds: a node has ``request_timeout`` for each
    answer, an operation ``api_timeout``, or its own ``timeout``, in all. An answer of more than ``max_answer`` bytes is
    an :exc:`~broker_core.client.UnexpectedAnswer`.

    Within its time a request is repeated if a connection is refused or lost, if the controller has moved, and if the
    error of the server may pass; at most ``retries`` times, without a limit by default. A repeated change may have been
    made the first time: a topic then exists already. When the time is up that is a
    :exc:`~broker_core.client.kafka.TimeoutException` which says why.

    An error of a whole request is raised, the error of one item when its result is read. All are
    :exc:`~broker_core.client.ClientError`, and errors of the protocol :exc:`~broker_core.client.kafka.KafkaException`.
    An argument that no server takes, such as a name over 32,767 bytes, is an
    :exc:`~broker_core.client.InvalidQuestion`, and an argument of another type a :exc:`TypeError`, both at once.

    Methods that end in ``_pages`` give pages as they come, of ``limit`` units, ``max_request_pagination_size_limit`` at
    the most, and the server's own setting of this name: pages of the server (KIP-1062), else parts that the client asks
    for, or the whole if it cannot be cut; ``paged_by`` of each says which. An operation asks each page within its time.

    It belongs to one event loop. :class:`~broker_core.client.kafka.BlockingAdminClient` is this client without
    ``await``.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        sasl: Sasl | None = None,
        tls: ClientTls | None = None,
        client_id: str = "broker-core",
        request_timeout: float = 30.0,
        api_timeout: float = 60.0,
        connect_timeout: float = 10.0,
        retries: int | None = None,
        max_answer: int = MAX_ANSWER,
        max_request_pagination_size_limit: int = MAX_PAGE,
    ) -> None:
        """Make a client that is not connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`, and
        :exc:`ValueError` for wrong numbers.
        """
        for name, seconds in (
            ("request_timeout", request_timeout),
            ("api_timeout", api_timeout),
            ("connect_timeout", connect_timeout),
        ):
            check_seconds(name, seconds)
        if retries is not None:
            at_least(0, retries, "retries")
        at_least(1, max_answer, "max_answer")
        self._most = at_least(1, max_request_pagination_size_limit, "max_request_pagination_size_limit")
        self.bootstrap: Final = bootstrap
        self._addresses = bootstrap_addresses(bootstrap)
        self._options = ConnectionOptions(
            client_id=client_id,
            connect_timeout=connect_timeout,
            request_timeout=request_timeout,
            max_answer=max_answer,
            tls=tls,
            sasl=sasl,
        )
        self._api_timeout = api_timeout
        self._retries = retries
        self._cluster: ClusterConnections | None = None
        self._is_closed = False

    # ---- topics --------------------------------------------------------------------------------------------

    async def list_topics(
        self, *, list_internal: bool = False, topic_ids: bool = False, timeout: float | None = None
    ) -> ListTopicsResult:
        """All topics that the asker may see, with internal ones on demand.

        A server with the API of KIP-142 sends names alone, without the partitions that nobody asked for. Ids are not in
        that API: with ``topic_ids`` it is always Metadata.
        """
        return await list_topics(self._whole(timeout), list_internal=list_internal, topic_ids=topic_ids)

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> CreateTopicsResult:
        """Make topics, each by itself; ``validate_only`` only checks whether it would succeed. The error of a failed
        topic is not raised here, but by ``result.all()``, and by each method of the result for that topic.
        """
        return await create_topics(self._attempts(timeout), topics, validate_only=validate_only)

    @overload
    async def describe_topics(
        self,
        topics: TopicIdCollection,
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> Results[uuid.UUID, TopicDescription]: ...
    @overload
    async def describe_topics(
        self,
        topics: TopicNameCollection | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> Results[str, TopicDescription]: ...
    async def describe_topics(
        self, topics: Topics, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, TopicDescription] | Results[uuid.UUID, TopicDescription]:
        """Topics with their partitions, by name or by id."""
        wanted = as_collection(topics)
        pager, operations = self._whole(timeout), include_authorized_operations
        if isinstance(wanted, TopicIdCollection):
            return await describe_by_id(pager, wanted, include_authorized_operations=operations)
        return await describe_by_name(pager, wanted, include_authorized_operations=operations)

    @overload
    async def delete_topics(
        self, topics: TopicIdCollection, *, timeout: float | None = None
    ) -> Results[uuid.UUID, None]: ...
    @overload
    async def delete_topics(
        self, topics: TopicNameCollection | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, None]: ...
    async def delete_topics(
        self, topics: Topics, *, timeout: float | None = None
    ) -> Results[str, None] | Results[uuid.UUID, None]:
        """Delete topics, each by itself, by name or by id; another topic of the same name is not deleted by the id."""
        wanted = as_collection(topics)
        if isinstance(wanted, TopicIdCollection):
            return await delete_by_id(self._attempts(timeout), wanted)
        return await delete_by_name(self._attempts(timeout), wanted)

    async def create_partitions(
        self,
        partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Raise the numbers of partitions of topics to the given ones."""
        return await create_partitions(self._attempts(timeout), partitions, validate_only=validate_only)

    # ---- configs -------------------------------------------------------------------------------------------

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, Config]:
        """The configs of topics and nodes in force: all of them, or the ones with ``names``."""
        wanted = given_resources(resources)
        pages = config_pages(
            self._whole(timeout),
            wanted,
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        return await collected(wanted, pages, latest)

    async def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, None]:
        """Change some configs of each resource, and leave the others: all changes of a resource are made, or none."""
        return await incremental_alter_configs(self._attempts(timeout), changes, validate_only=validate_only)

    # ---- ACLs ----------------------------------------------------------------------------------------------

    async def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout: float | None = None
    ) -> Page[AclBinding]:
        """The bindings that match; all of them without a filter."""
        return await joined(acl_pages(self._whole(timeout), wanted or AclFilter()))

    async def create_acls(
        self, bindings: Iterable[AclBinding], *, timeout: float | None = None
    ) -> Results[AclBinding, None]:
        """Add bindings, each by itself; one that is there already is no error."""
        return await create_acls(self._attempts(timeout), bindings)

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout: float | None = None
    ) -> Results[AclFilter, Results[AclBinding, None]]:
        """Remove the bindings that match; returns the matched ones by filter."""
        return await delete_acls(self._attempts(timeout), filters)

    # ---- pages ---------------------------------------------------------------------------------------------

    def list_topics_pages(
        self, *, list_internal: bool = False, limit: int | None = None
    ) -> AsyncIterator[Page[TopicListing]]:
        """Topics with their ids, in pages of ``limit`` partitions."""
        return topic_pages(self._pager(limit), list_internal=list_internal)

    def describe_configs_pages(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        limit: int | None = None,
    ) -> AsyncIterator[Results[ConfigResource, Config]]:
        """The configs of ``limit`` resources at a time."""
        return config_pages(
            self._pager(limit),
            given_resources(resources),
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )

    def describe_acls_pages(
        self, wanted: AclFilter | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Page[AclBinding]]:
        """The bindings that match, of ``limit`` resources at a time."""
        return acl_pages(self._pager(limit), wanted or AclFilter())

    # ---- groups and transactions ---------------------------------------------------------------------------

    def list_groups_pages(
        self, *, states: Sequence[str] = (), types: Sequence[str] = (), limit: int | None = None
    ) -> AsyncIterator[Page[GroupListing]]:
        """The groups of all nodes, ``limit`` at a time."""
        return listed_groups(self._pager(limit), states, types)

    async def list_groups(
        self, *, states: Sequence[str] = (), types: Sequence[str] = (), timeout: float | None = None
    ) -> Page[GroupListing]:
        """The groups of all nodes, in some states or of some types."""
        return await joined(listed_groups(self._whole(timeout), states, types))

    def describe_groups_pages(
        self, groups: Iterable[str], *, limit: int | None = None
    ) -> AsyncIterator[Results[str, GroupDescription]]:
        """Groups with ``limit`` members at a time: a group may go on with the next page."""
        return classic_groups(self._pager(limit), groups)

    async def describe_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Groups of the classic protocol with their members."""
        wanted = list(groups)
        return await collected(wanted, classic_groups(self._whole(timeout), wanted), with_members)

    def describe_consumer_groups_pages(
        self, groups: Iterable[str], *, limit: int | None = None
    ) -> AsyncIterator[Results[str, GroupDescription]]:
        """Groups with ``limit`` members at a time: a group may go on with the next page."""
        return consumer_groups(self._pager(limit), groups)

    async def describe_consumer_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, GroupDescription]:
        """Groups of consumers (KIP-848) with their members."""
        wanted = list(groups)
        return await collected(wanted, consumer_groups(self._whole(timeout), wanted), with_members)

    def list_group_offsets_pages(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, limit: int | None = None
    ) -> AsyncIterator[Results[str, tuple[OffsetAndMetadata, ...]]]:
        """The committed offsets of groups, ``limit`` partitions at a time: a group may go on with the next page."""
        return group_offsets(self._pager(limit), groups)

    async def list_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, timeout: float | None = None
    ) -> Results[str, tuple[OffsetAndMetadata, ...]]:
        """The committed offsets of groups, for some partitions, or for all (``None``)."""
        return await collected(groups, group_offsets(self._whole(timeout), groups), with_offsets)

    def list_transactions_pages(
        self, *, states: Sequence[str] = (), producer_ids: Sequence[int] = (), limit: int | None = None
    ) -> AsyncIterator[Page[TransactionListing]]:
        """The transactions of all nodes, ``limit`` at a time, the newest producers' first."""
        return listed_transactions(self._pager(limit), states, producer_ids)

    async def list_transactions(
        self, *, states: Sequence[str] = (), producer_ids: Sequence[int] = (), timeout: float | None = None
    ) -> Page[TransactionListing]:
        """The transactions of all nodes."""
        return await joined(listed_transactions(self._whole(timeout), states, producer_ids))

    def describe_transactions_pages(
        self, transactional_ids: Iterable[str], *, limit: int | None = None
    ) -> AsyncIterator[Results[str, TransactionDescription]]:
        """``limit`` transactions at a time."""
        return transactions(self._pager(limit), transactional_ids)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> Results[str, TransactionDescription]:
        """Transactions with their partitions."""
        wanted = list(transactional_ids)
        return await collected(wanted, transactions(self._whole(timeout), wanted), latest)

    # ---- partitions ----------------------------------------------------------------------------------------

    def list_offsets_pages(
        self, partitions: Mapping[TopicPartition, int], *, limit: int | None = None
    ) -> AsyncIterator[Results[TopicPartition, PartitionOffset]]:
        """The offsets of ``limit`` partitions at a time."""
        return of_partitions.offsets(self._pager(limit), partitions)

    async def list_offsets(
        self, partitions: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> Results[TopicPartition, PartitionOffset]:
        """The offset of each partition at a time in milliseconds since 1970: -1 is its end, -2 its beginning."""
        return await collected(partitions, of_partitions.offsets(self._whole(timeout), partitions), latest)

    def describe_producers_pages(
        self, partitions: Iterable[TopicPartition], *, limit: int | None = None
    ) -> AsyncIterator[Results[TopicPartition, tuple[ProducerState, ...]]]:
        """``limit`` producers at a time: a partition may go on with the next page."""
        return of_partitions.producers(self._pager(limit), partitions)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """The producers of each partition."""
        wanted = list(partitions)
        return await collected(
            wanted, of_partitions.producers(self._whole(timeout), wanted), of_partitions.with_producers
        )

    def describe_log_dirs_pages(
        self,
        nodes: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Page[ReplicaLog]]:
        """The logs of ``limit`` partitions at a time."""
        return of_partitions.log_dirs(self._pager(limit), nodes, partitions)

    async def describe_log_dirs(
        self,
        nodes: Iterable[int] | None = None,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> Page[ReplicaLog]:
        """The logs in the directories of nodes, of all or of some partitions."""
        pages = of_partitions.log_dirs(self._whole(timeout), nodes, partitions)
        return await joined(pages, *of_partitions.LOGS)

    def list_partition_reassignments_pages(
        self, partitions: Iterable[TopicPartition] | None = None, *, limit: int | None = None
    ) -> AsyncIterator[Page[PartitionReassignment]]:
        """Partitions whose replicas change, ``limit`` at a time."""
        return of_partitions.reassignments(self._pager(limit), partitions)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout: float | None = None
    ) -> Page[PartitionReassignment]:
        """Partitions whose replicas change, of all or of some."""
        pages = of_partitions.reassignments(self._whole(timeout), partitions)
        return await joined(pages, *of_partitions.MOVES)

    # ---- the cluster ---------------------------------------------------------------------------------------

    async def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """The id of the cluster, its nodes and its controller."""
        return await describe_cluster(
            self._attempts(timeout), include_authorized_operations=include_authorized_operations
        )

    async def api_versions(self, *, timeout: float | None = None) -> Mapping[int, tuple[int, int]]:
        """The versions of the APIs that a node has: from and to, by key."""
        attempts = self._attempts(timeout)
        return (await attempts.until_answered(attempts.cluster.any_node)).versions

    async def close(self) -> None:
        """Close all connections; requests fail, now and later. Closing again does nothing."""
        self._is_closed = True
        if self._cluster is not None:
            self._check_loop()
            await self._cluster.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.bootstrap}>"

    def _pager(self, limit: int | None) -> Pager:
        """Pages that are operations by themselves."""
        units = self._most if limit is None else min(at_least(1, limit, "limit"), self._most)
        return Pager(partial(self._attempts, None), units)

    def _whole(self, timeout: float | None) -> Pager:
        """All pages of one operation."""
        attempts = self._attempts(timeout)
        return Pager(lambda: attempts, self._most)

    def _attempts(self, timeout: float | None) -> Attempts:
        seconds = self._api_timeout if timeout is None else timeout
        check_seconds("timeout", seconds)
        if self._is_closed:
            raise ConnectionLost(f"the client of {self.bootstrap} is closed")
        self._check_loop()
        if self._cluster is None:
            self._cluster = ClusterConnections(self._addresses, self._open)
        return Attempts(self._cluster, seconds, self._options.request_timeout, self._retries)

    async def _open(self, address: Address) -> NodeConnection:
        return await NodeConnection.open(address, self._options)
