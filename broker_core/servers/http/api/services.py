"""The parts of a broker that the operations of the HTTP API use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple, Protocol

from broker_core.access import Asker, Authenticator, Clients
from broker_core.catalog import AsyncCatalog, CatalogLogReader
from broker_core.change_log import ChangeLog
from broker_core.memory import Permits
from broker_core.metrics import History, Metrics
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import Check
from broker_core.reloads import LiveSettings
from broker_core.servers.admission import ApiAdmission
from broker_core.servers.connection import LargeAnswers
from broker_core.servers.http.api.cross_origin import WebPages
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.service import Find, ListingFeeds, LookupQuestions, Quotas, TopicEditor
from broker_core.settings import HttpSettings, Settings
from broker_core.upstream.pulsar import KnownNamespaces

__all__ = [
    "ApiServices",
    "CheckResult",
    "HttpMetrics",
    "holds",
    "needs_catalog",
    "needs_changes",
    "takes_changes",
]

_BOUNDS: Final = (1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0)
#: The statuses that the metrics have from the start, with 0.
_KNOWN: Final = ("200", "304", "400", "401", "403", "404", "503", "504")


class HttpMetrics:
    """Counts requests in the metrics of one broker; ``under_way`` are the requests that are answered at this moment."""

    def __init__(self, metrics: Metrics) -> None:
        self.under_way = 0
        self._requests = metrics.counter(
            "http_requests",
            "Requests of the HTTP API, by operation and status; cut: the client was gone, or cut off.",
            "operation",
            "status",
        )
        self._seconds = metrics.histogram(
            "http_request_seconds",
            "Seconds from the head of a request to the last byte of its answer.",
            _BOUNDS,
            "operation",
        )
        self._bytes = metrics.counter(
            "http_response_bytes", "Bytes of the answers of the HTTP API, heads included.", "operation"
        )
        metrics.gauge(
            "http_requests_under_way", "Requests of the HTTP API under way.", lambda: self.under_way
        )

    def expect(self, operations: Iterable[str]) -> None:
        """Show these operations from now on, with 0."""
        for operation, status in product(operations, _KNOWN):
            self._requests.add(0, operation, status)
            self._bytes.add(0, operation)
            self._seconds.of(operation)

    def answered(self, operation: str, status: int | None, seconds: float, size: int) -> None:
        """Count an answer to a request; ``status`` is ``None`` if the client did not get all of it."""
        self._requests(operation, "cut" if status is None else str(status))
        self._seconds.of(operation).observe(seconds)
        self._bytes.add(size, operation)


class ClusterDetails(Protocol):
    """The further data of a cluster besides topics; a failure is a :exc:`~broker_core.errors.ListingFailed`."""

    @property
    def logs(self) -> Callable[[Asker, NamespaceName], Awaitable[ChangeLog]] | None:
        """The function that gives the change log of its listing for a client; ``None`` if it is not followed."""

    async def namespaces(self, asker: Asker, /) -> KnownNamespaces:
        """The cluster's namespaces that are known for a client."""


class CheckResult(NamedTuple):
    """The findings of `broker-core check` about the settings of a server, with their time in Unix seconds."""

    found: list[Check]
    at: float


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The parts that operations use. ``catalog``, ``change_log`` and ``changes`` are ``None`` before a cluster.

    ``brokers`` are the cluster's. ``authenticator`` is for clients; the operator needs no credentials.
    """

    pipeline: Pipeline
    permits: Permits
    metrics: Metrics
    find: Find
    live: LiveSettings
    brokers: LookupQuestions | None = None
    catalog: AsyncCatalog | None = None
    change_log: CatalogLogReader | None = None
    changes: TopicEditor | None = None
    authenticator: Authenticator | None = None
    admission: ApiAdmission = field(default_factory=ApiAdmission)
    answers: LargeAnswers = field(default_factory=LargeAnswers)
    #: The cluster behind this server.
    cluster: ClusterDetails | None = None
    #: The questions that streams follow, if any are served.
    feeds: ListingFeeds | None = None
    #: The clients of all servers.
    clients: Clients = field(default_factory=Clients)
    quotas: Quotas = field(default_factory=Quotas)
    #: The last hour of the server, if anybody can ask for it.
    history: History | None = None
    #: Checks the settings as they could be read now; ``None`` if a program gave them.
    check: Callable[[], Awaitable[CheckResult]] | None = None
    #: The rules for pages of this server.
    pages: WebPages = field(default_factory=WebPages)
    #: The counts of requests, one object for all servers of a broker.
    http_metrics: HttpMetrics = field(default_factory=lambda: HttpMetrics(Metrics()))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of which clients must use one; none if all are let in."""
        if self.authenticator is None or not self.authenticator.enabled:
            return ()
        # Without one of these a plugin authenticates, mostly by tokens.
        return tuple(self.authenticator.methods) or ("token",)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.live.current

    @property
    def kafka_namespace(self) -> NamespaceName | None:
        """The namespace of the topics of a Kafka cluster behind this server."""
        kafka = self.settings.kafka
        return (
            None if kafka is None or kafka.upstream is None else NamespaceName.parse(kafka.upstream.namespace)
        )

    @property
    def http(self) -> HttpSettings:
        """The table ``[http]``; its defaults if there is only the operator's socket."""
        return self.settings.http or HttpSettings()


def needs_catalog(services: ApiServices) -> AsyncCatalog:
    """The embedded catalogue, for an operation that is for it alone. Raises the error 501 before a cluster."""
    if services.catalog is None:
        raise _no_catalog()
    return services.catalog


def needs_changes(services: ApiServices, namespace: NamespaceName | None = None) -> TopicEditor:
    """The changes of topics, of a namespace. Raises the error 501 if Pulsar's brokers hold them."""
    changes = services.changes
    if changes is None or (namespace is not None and not holds(services, namespace)):
        raise _no_catalog()
    return changes


def holds(services: ApiServices, namespace: NamespaceName) -> bool:
    """Whether the catalogue or a Kafka cluster holds the topics of a namespace, and not Pulsar's brokers."""
    return services.changes is not None and services.changes.are_of(namespace)


def takes_changes(services: ApiServices, namespace: NamespaceName | None) -> bool:
    """Whether topics of a namespace, or of any, can be changed over HTTP."""
    there = services.changes is not None if namespace is None else holds(services, namespace)
    return there and services.http.writes


def _no_catalog() -> RequestRefused:
    return refused(
        501,
        "this server has no catalogue of its own: the brokers behind it hold the topics; "
        "ask the web service of a broker",
    )
