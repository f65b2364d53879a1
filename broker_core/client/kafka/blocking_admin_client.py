"""The admin client for programs without an event loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast, overload

from broker_core.client.client_tls import ClientTls
from broker_core.client.kafka.admin_client import MAX_ANSWER, MAX_PAGE, AdminClient
from broker_core.client.kafka.calls.describe_cluster import ClusterDescription
from broker_core.client.kafka.configs import AlterConfigOp, Config, ConfigResource
from broker_core.client.kafka.created_topics import CreateTopicsResult
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.sasl import Sasl
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection, Topics
from broker_core.client.kafka.topic_listings import ListTopicsResult
from broker_core.client.kafka.topics import NewPartitions, NewTopic, TopicDescription
from broker_core.client.loop_thread import LoopThread
from broker_core.kafka.acls.acl_filters import AclFilter
from broker_core.kafka.acls.bindings import AclBinding

__all__ = ["BlockingAdminClient"]

P = ParamSpec("P")
T = TypeVar("T")


def _run(
    method: Callable[Concatenate[AdminClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingAdminClient, P], T]:
    @wraps(method)
    def run(self: BlockingAdminClient, /, *given: P.args, **named: P.kwargs) -> T:
        return self._thread.run(lambda: method(self._client, *given, **named))

    return run


def _iterate(
    method: Callable[Concatenate[AdminClient, P], AsyncIterator[T]],
) -> Callable[Concatenate[BlockingAdminClient, P], Iterator[T]]:
    @wraps(method)
    def iterate(self: BlockingAdminClient, /, *given: P.args, **named: P.kwargs) -> Iterator[T]:
        pages = method(self._client, *given, **named)

        def each() -> Iterator[T]:
            end = object()
            while (page := self._thread.run(lambda: _next(pages, end))) is not end:
                yield cast("T", page)

        return each()

    return iterate


async def _next(pages: AsyncIterator[T], end: object) -> T | object:
    return await anext(pages, end)


class BlockingAdminClient:
    """:class:`~broker_core.client.kafka.AdminClient` without ``await``: the same arguments, methods and errors.

    One client serves any number of threads. Its connections are in a thread of their own, which ends with :meth:`close`
    or ``with``. Ctrl-C interrupts a call. Inside of a running event loop a call raises :exc:`RuntimeError`.
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
        """Nothing is connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`."""
        self._client = AdminClient(
            bootstrap,
            sasl=sasl,
            tls=tls,
            client_id=client_id,
            request_timeout=request_timeout,
            api_timeout=api_timeout,
            connect_timeout=connect_timeout,
            retries=retries,
            max_answer=max_answer,
            max_request_pagination_size_limit=max_request_pagination_size_limit,
        )
        self.bootstrap = bootstrap
        self._thread = LoopThread("BlockingAdminClient", "AdminClient", self._client.close)

    def list_topics(
        self, *, list_internal: bool = False, topic_ids: bool = False, timeout: float | None = None
    ) -> ListTopicsResult:
        """All topics that the asker may see, with internal ones on demand."""
        return self._thread.run(
            lambda: self._client.list_topics(
                list_internal=list_internal, topic_ids=topic_ids, timeout=timeout
            )
        )

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, timeout: float | None = None
    ) -> CreateTopicsResult:
        """Make topics, each by itself; ``validate_only`` says what would come of it."""
        return self._thread.run(
            lambda: self._client.create_topics(topics, validate_only=validate_only, timeout=timeout)
        )

    @overload
    def describe_topics(
        self,
        topics: TopicIdCollection,
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> Results[uuid.UUID, TopicDescription]: ...
    @overload
    def describe_topics(
        self,
        topics: TopicNameCollection | Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> Results[str, TopicDescription]: ...
    def describe_topics(
        self, topics: Topics, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> Results[str, TopicDescription] | Results[uuid.UUID, TopicDescription]:
        """Topics with their partitions, by name or by id."""
        operations = include_authorized_operations
        if isinstance(topics, TopicIdCollection):
            by_id = topics
            return self._thread.run(
                lambda: self._client.describe_topics(
                    by_id, include_authorized_operations=operations, timeout=timeout
                )
            )
        by_name = topics
        return self._thread.run(
            lambda: self._client.describe_topics(
                by_name, include_authorized_operations=operations, timeout=timeout
            )
        )

    @overload
    def delete_topics(
        self, topics: TopicIdCollection, *, timeout: float | None = None
    ) -> Results[uuid.UUID, None]: ...
    @overload
    def delete_topics(
        self, topics: TopicNameCollection | Iterable[str], *, timeout: float | None = None
    ) -> Results[str, None]: ...
    def delete_topics(
        self, topics: Topics, *, timeout: float | None = None
    ) -> Results[str, None] | Results[uuid.UUID, None]:
        """Delete topics, each by itself, by name or by id."""
        if isinstance(topics, TopicIdCollection):
            by_id = topics
            return self._thread.run(lambda: self._client.delete_topics(by_id, timeout=timeout))
        by_name = topics
        return self._thread.run(lambda: self._client.delete_topics(by_name, timeout=timeout))

    def create_partitions(
        self,
        partitions: Mapping[str, NewPartitions | int],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Let topics have so many partitions in all."""
        return self._thread.run(
            lambda: self._client.create_partitions(partitions, validate_only=validate_only, timeout=timeout)
        )

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Sequence[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, Config]:
        """The configs of topics and nodes as they are in force: all of them, or those with these names."""
        return self._thread.run(
            lambda: self._client.describe_configs(
                resources,
                names=names,
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
                timeout=timeout,
            )
        )

    def incremental_alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[ConfigResource, None]:
        """Change some configs of each resource, and leave the others."""
        return self._thread.run(
            lambda: self._client.incremental_alter_configs(
                changes, validate_only=validate_only, timeout=timeout
            )
        )

    def describe_acls(
        self, wanted: AclFilter | None = None, *, timeout: float | None = None
    ) -> list[AclBinding]:
        """The bindings that match; all of them without a filter."""
        return self._thread.run(lambda: self._client.describe_acls(wanted, timeout=timeout))

    def create_acls(
        self, bindings: Iterable[AclBinding], *, timeout: float | None = None
    ) -> Results[AclBinding, None]:
        """Add bindings, each by itself."""
        return self._thread.run(lambda: self._client.create_acls(bindings, timeout=timeout))

    def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout: float | None = None
    ) -> Results[AclFilter, Results[AclBinding, None]]:
        """Remove the bindings that match; by filter, those that matched."""
        return self._thread.run(lambda: self._client.delete_acls(filters, timeout=timeout))

    def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> ClusterDescription:
        """The id of the cluster, its nodes and its controller."""
        return self._thread.run(
            lambda: self._client.describe_cluster(
                include_authorized_operations=include_authorized_operations, timeout=timeout
            )
        )

    list_topics_pages = _iterate(AdminClient.list_topics_pages)
    describe_configs_pages = _iterate(AdminClient.describe_configs_pages)
    describe_acls_pages = _iterate(AdminClient.describe_acls_pages)
    list_groups = _run(AdminClient.list_groups)
    list_groups_pages = _iterate(AdminClient.list_groups_pages)
    describe_groups = _run(AdminClient.describe_groups)
    describe_groups_pages = _iterate(AdminClient.describe_groups_pages)
    describe_consumer_groups = _run(AdminClient.describe_consumer_groups)
    describe_consumer_groups_pages = _iterate(AdminClient.describe_consumer_groups_pages)
    list_group_offsets = _run(AdminClient.list_group_offsets)
    list_group_offsets_pages = _iterate(AdminClient.list_group_offsets_pages)
    list_transactions = _run(AdminClient.list_transactions)
    list_transactions_pages = _iterate(AdminClient.list_transactions_pages)
    describe_transactions = _run(AdminClient.describe_transactions)
    describe_transactions_pages = _iterate(AdminClient.describe_transactions_pages)
    list_offsets = _run(AdminClient.list_offsets)
    list_offsets_pages = _iterate(AdminClient.list_offsets_pages)
    describe_producers = _run(AdminClient.describe_producers)
    describe_producers_pages = _iterate(AdminClient.describe_producers_pages)
    describe_log_dirs = _run(AdminClient.describe_log_dirs)
    describe_log_dirs_pages = _iterate(AdminClient.describe_log_dirs_pages)
    list_partition_reassignments = _run(AdminClient.list_partition_reassignments)
    list_partition_reassignments_pages = _iterate(AdminClient.list_partition_reassignments_pages)

    def close(self) -> None:
        """Close all connections and end the thread; what other threads ask fails. Closing again does nothing."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<BlockingAdminClient of {self.bootstrap}>"
