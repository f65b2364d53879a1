"""The lookup client for programs without an event loop."""

from __future__ import annotations

from broker_core.client.authentication import Authentication
from broker_core.client.client_tls import ClientTls
from broker_core.client.lookup_client import MAX_ANSWER, LookupClient
from broker_core.client.loop_thread import BlockingClient, blocking

__all__ = ["BlockingLookupClient"]


class BlockingLookupClient(BlockingClient[LookupClient]):
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
        super().__init__(
            LookupClient(
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
        )
        self.service_url = service_url

    get_topics_under_namespace = blocking(LookupClient.get_topics_under_namespace)
    partitioned_metadata = blocking(LookupClient.partitioned_metadata)
    lookup = blocking(LookupClient.lookup)

    def __repr__(self) -> str:
        return f"<BlockingLookupClient of {self.service_url}>"
