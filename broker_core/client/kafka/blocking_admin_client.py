"""The admin client for programs without an event loop."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, overload

from broker_core.client.client_tls import ClientTls
from broker_core.client.kafka.admin_client import MAX_ANSWER, MAX_PAGE, AdminClient
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.sasl import Sasl
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection, Topics
from broker_core.client.kafka.topics import TopicDescription
from broker_core.client.loop_thread import BlockingClient, blocking

__all__ = ["BlockingAdminClient"]

P = ParamSpec("P")
T = TypeVar("T")


def _iterate(
    method: Callable[Concatenate[AdminClient, P], AsyncIterator[T]],
) -> Callable[Concatenate[BlockingAdminClient, P], Iterator[T]]:
    @wraps(method)
    def iterate(self: BlockingAdminClient, /, *given: P.args, **named: P.kwargs) -> Iterator[T]:
        pages = method(self._client, *given, **named)

        def each() -> Iterator[T]:
            end = object()
            while (page := self._run(lambda: _next(pages, end))) is not end:
                yield cast("T", page)

        return each()

    return iterate


async def _next(pages: AsyncIterator[T], end: object) -> T | object:
    return await anext(pages, end)


class BlockingAdminClient(BlockingClient[AdminClient]):
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
        super().__init__(
            AdminClient(
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
        )
        self.bootstrap = bootstrap

    list_topics = blocking(AdminClient.list_topics)
    create_topics = blocking(AdminClient.create_topics)

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
        found: Results[Any, TopicDescription] = self._run(
            lambda: self._client.describe_topics(
                topics, include_authorized_operations=include_authorized_operations, timeout=timeout
            )
        )
        return found

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
        deleted: Results[Any, None] = self._run(lambda: self._client.delete_topics(topics, timeout=timeout))
        return deleted

    create_partitions = blocking(AdminClient.create_partitions)
    describe_configs = blocking(AdminClient.describe_configs)
    incremental_alter_configs = blocking(AdminClient.incremental_alter_configs)
    describe_acls = blocking(AdminClient.describe_acls)
    create_acls = blocking(AdminClient.create_acls)
    delete_acls = blocking(AdminClient.delete_acls)
    describe_cluster = blocking(AdminClient.describe_cluster)
    api_versions = blocking(AdminClient.api_versions)
    list_topics_pages = _iterate(AdminClient.list_topics_pages)
    describe_configs_pages = _iterate(AdminClient.describe_configs_pages)
    describe_acls_pages = _iterate(AdminClient.describe_acls_pages)
    list_groups = blocking(AdminClient.list_groups)
    list_groups_pages = _iterate(AdminClient.list_groups_pages)
    describe_groups = blocking(AdminClient.describe_groups)
    describe_groups_pages = _iterate(AdminClient.describe_groups_pages)
    describe_consumer_groups = blocking(AdminClient.describe_consumer_groups)
    describe_consumer_groups_pages = _iterate(AdminClient.describe_consumer_groups_pages)
    list_group_offsets = blocking(AdminClient.list_group_offsets)
    list_group_offsets_pages = _iterate(AdminClient.list_group_offsets_pages)
    list_transactions = blocking(AdminClient.list_transactions)
    list_transactions_pages = _iterate(AdminClient.list_transactions_pages)
    describe_transactions = blocking(AdminClient.describe_transactions)
    describe_transactions_pages = _iterate(AdminClient.describe_transactions_pages)
    list_offsets = blocking(AdminClient.list_offsets)
    list_offsets_pages = _iterate(AdminClient.list_offsets_pages)
    describe_producers = blocking(AdminClient.describe_producers)
    describe_producers_pages = _iterate(AdminClient.describe_producers_pages)
    describe_log_dirs = blocking(AdminClient.describe_log_dirs)
    describe_log_dirs_pages = _iterate(AdminClient.describe_log_dirs_pages)
    list_partition_reassignments = blocking(AdminClient.list_partition_reassignments)
    list_partition_reassignments_pages = _iterate(AdminClient.list_partition_reassignments_pages)

    def __repr__(self) -> str:
        return f"<BlockingAdminClient of {self.bootstrap}>"
