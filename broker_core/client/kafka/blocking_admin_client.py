"""The admin client for programs without an event loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast, overload

from broker_core.client.client_tls import ClientTls
from broker_core.client.kafka.admin_client import MAX_ANSWER, MAX_PAGE, AdminClient
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.sasl import Sasl
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection, Topics
from broker_core.client.kafka.topics import TopicDescription
from broker_core.client.loop_thread import LoopThread

__all__ = ["BlockingAdminClient"]

P = ParamSpec("P")
T = TypeVar("T")


def _run(
    method: Callable[Concatenate[AdminClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingAdminClient, P], T]:
    @wraps(method)
    def run(self: BlockingAdminClient, /, *given: P.args, **named: P.kwargs) -> T:
        ask: Callable[P, Coroutine[Any, Any, T]] = getattr(self._client, method.__name__)
        return self._thread.run(lambda: ask(*given, **named))

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
    or ``with``. Ctrl-C interrupts a call. Inside a running event loop a call raises :exc:`RuntimeError`.
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
        """Make a client that is not connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`."""
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

    list_topics = _run(AdminClient.list_topics)
    create_topics = _run(AdminClient.create_topics)

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

    create_partitions = _run(AdminClient.create_partitions)
    describe_configs = _run(AdminClient.describe_configs)
    incremental_alter_configs = _run(AdminClient.incremental_alter_configs)
    describe_acls = _run(AdminClient.describe_acls)
    create_acls = _run(AdminClient.create_acls)
    delete_acls = _run(AdminClient.delete_acls)
    describe_cluster = _run(AdminClient.describe_cluster)
    api_versions = _run(AdminClient.api_versions)
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
        """Close all connections and end the thread; requests of other threads fail. Closing again does nothing."""
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<BlockingAdminClient of {self.bootstrap}>"
