"""The lookup client for programs without an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from broker_core.client.authentication import Authentication
from broker_core.client.client_tls import ClientTls
from broker_core.client.lookup_client import MAX_ANSWER, LookupClient
from broker_core.client.loop_thread import LoopThread
from broker_core.client.pulsar.lookup_session import BrokerAddress
from broker_core.client.topic_listing import TopicListing
from broker_core.names import Mode, NamespaceName, TopicName

__all__ = ["BlockingLookupClient"]


class BlockingLookupClient:
    """:class:`~broker_core.client.LookupClient` without ``await``: the same arguments and errors, and its methods
        except for watching.

    One client serves any number of threads. Its connections are in a thread of their own, which ends with :meth:`close`
    or ``with``. Ctrl-C interrupts a call. Inside a running event loop a call raises :exc:`RuntimeError`.
    """

    def __init__(
        self,
        service_url: str,
        *,
        auth: Authentication | None = None,
        tls: ClientTls | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        client_version: str | None = None,
        concurrent_requests: int = 100,
        max_answer: int = MAX_ANSWER,
    ) -> None:
        """Make a client that is not connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`."""
        self._client = LookupClient(
            service_url,
            auth=auth,
            tls=tls,
            operation_timeout=operation_timeout,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            client_version=client_version,
            concurrent_requests=concurrent_requests,
            max_answer=max_answer,
        )
        self.service_url = service_url
        self._thread = LoopThread("BlockingLookupClient", "LookupClient", self._client.close)

    def get_topics_under_namespace(
        self,
        namespace: str | NamespaceName,
        mode: Mode = Mode.PERSISTENT,
        topics_pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> TopicListing:
        """The topics of a namespace that match, or the answer that it still has ``topics_hash``."""
        return self._thread.run(
            lambda: self._client.get_topics_under_namespace(
                namespace, mode, topics_pattern, topics_hash, properties, timeout=timeout
            )
        )

    def partitioned_metadata(
        self, topic: str | TopicName, *, auto_create: bool = False, timeout: float | None = None
    ) -> int:
        """The number of partitions of a topic; 0 for one without."""
        return self._thread.run(
            lambda: self._client.partitioned_metadata(topic, auto_create=auto_create, timeout=timeout)
        )

    def lookup(
        self, topic: str | TopicName, *, listener_name: str | None = None, timeout: float | None = None
    ) -> BrokerAddress:
        """The broker that serves a topic; redirects are followed."""
        return self._thread.run(
            lambda: self._client.lookup(topic, listener_name=listener_name, timeout=timeout)
        )

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
        return f"<BlockingLookupClient of {self.service_url}>"
