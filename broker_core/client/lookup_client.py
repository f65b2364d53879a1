"""The lookup client: requests to a lookup service; reconnects and fails over by itself."""

from __future__ import annotations

import asyncio
import warnings
import weakref
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from broker_core.client.authentication import Authentication, Tls
from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    InvalidServiceUrl,
    OperationTimeout,
    is_passing,
)
from broker_core.client.client_tls import ClientTls
from broker_core.client.loop_bound import LoopBound
from broker_core.client.pulsar.credentials import Credentials
from broker_core.client.pulsar.lookup_session import BrokerAddress, WatchReceiver, default_client_version
from broker_core.client.pulsar.pulsar_service import PulsarService
from broker_core.client.shared_questions import SharedQuestions
from broker_core.client.topic_listing import ListingWarning, TopicListing
from broker_core.client.topics_question import TopicsQuestion
from broker_core.concurrency import backoff, ended_within
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.redaction import printable
from broker_core.service_addresses import is_tls

if TYPE_CHECKING:
    from broker_core.client.http.http_service import HttpService
    from broker_core.client.pattern_discovery import PatternDiscovery

__all__ = ["MAX_ANSWER", "LookupClient", "check_seconds", "credentials_of"]

T = TypeVar("T")

#: A lookup service by one of its protocols. Methods have no time-out, and raise :exc:`ClientError`.
_Service: TypeAlias = "PulsarService | HttpService"
#: Bytes of an answer; a million names take about 60 MB.
MAX_ANSWER: Final = 1024 * 1024 * 1024
_FIRST_PAUSE: Final = 0.1  # seconds before a question is asked again; then twice as long each time
_LONGEST_PAUSE: Final = 2.0


class LookupClient(LoopBound):
    """A client of a Pulsar cluster's lookup service, or of this server: ``async with LookupClient(service_url) as
    client``. It connects when it is asked something, and again when a connection is lost.

    ``service_url`` is ``pulsar://HOST:PORT`` or ``http://HOST:PORT``, with TLS ``pulsar+ssl://`` or ``https://``; of
    several addresses (``pulsar://A:6650,B:6650``) one that fails is left alone for a while. ``auth`` has the
    credentials; ``tls`` the trusted certificates. Times are in seconds: an operation ends within ``operation_timeout``,
    or its own ``timeout``. At most ``concurrent_requests`` are under way, others wait. An answer of more than
    ``max_answer`` bytes is an :exc:`~broker_core.client.UnexpectedAnswer`.

    Within its time a question is asked again if a connection is refused or lost, and if the server has no room
    (``TooManyRequests``) or is not ready (``ServiceNotReady``). When the time is up that is an
    :exc:`~broker_core.client.OperationTimeout` which says why. Any other error is raised at once: all are
    :exc:`~broker_core.client.ClientError`, but :exc:`~broker_core.errors.InvalidName` for a wrong name and
    :exc:`~broker_core.errors.InvalidPattern`.

    Equal questions are asked once for all callers of the same time. A caller that comes while an equal question is
    under way gets the answer to the next one: no answer is older than its question. A caller that is cancelled takes
    nothing from the others; the last one gives up the request at the server too.

    It belongs to one event loop. :class:`~broker_core.client.BlockingLookupClient` is this client without ``await``.
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
        """Make a client that is not connected yet. Raises :exc:`~broker_core.client.InvalidServiceUrl`, and
        :exc:`ValueError` for wrong numbers.
        """
        for name, seconds in (
            ("operation_timeout", operation_timeout),
            ("connect_timeout", connect_timeout),
            ("keep_alive", keep_alive),
        ):
            check_seconds(name, seconds)
        for name, number in (("concurrent_requests", concurrent_requests), ("max_answer", max_answer)):
            if number < 1:
                raise ValueError(f"{name} is 1 at least, not {number}")
        self.service_url: Final = service_url
        self._operation_timeout = operation_timeout
        self._service = _service(
            service_url,
            auth,
            tls,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            client_version=client_version,
            max_answer=max_answer,
        )
        self._places = asyncio.Semaphore(concurrent_requests)
        self._shared: SharedQuestions[None, object] = SharedQuestions(together=True)
        #: Why a question was not answered so far.
        self._reasons: dict[Hashable, str] = {}
        self._closed = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self._end: weakref.finalize[..., LookupClient] | None = None

    async def get_topics_under_namespace(
        self,
        namespace: str | NamespaceName,
        mode: Mode = Mode.PERSISTENT,
        topics_pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> TopicListing:
        """The topics of a namespace that match (PIP-452): the listing, or the answer that it still has ``topics_hash``.

        The pattern must match ``tenant/namespace/topic`` in full, without a partition suffix; its scheme does not
        count. If the server does not apply it (``filtered`` is false), the client does, with RE2: the names match it
        either way. Raises :exc:`~broker_core.errors.InvalidPattern` if that is needed and not possible. Warns
        (:exc:`~broker_core.client.ListingWarning`) of a question that selects otherwise than it seems.
        """
        question = TopicsQuestion.of(namespace, mode, topics_pattern, topics_hash, properties)
        listing = await self._ask(question, lambda: self._service.topics(question), timeout)
        for text in listing.warnings:
            warnings.warn(printable(text), ListingWarning, stacklevel=2)
        return listing

    def watch(
        self,
        topics_pattern: str,
        properties: Mapping[str, str] | None = None,
        *,
        period: float = 60.0,
        confirmations: int = 2,
        mode: Mode = Mode.PERSISTENT,
        on_error: Callable[[Exception], None] | None = None,
    ) -> PatternDiscovery:
        """The topics of a pattern as they come and go: ``async with client.watch(pattern) as changes: async for ...``

        The server reports changes, if it offers that (PIP-145): over Pulsar's protocol, for persistent topics and
        without properties. It is asked every ``period`` seconds in any case.
        :attr:`~broker_core.client.PatternDiscovery.is_watching` says which.
        """
        from broker_core.client.pattern_discovery import PatternDiscovery

        return PatternDiscovery(
            self,
            topics_pattern,
            properties,
            period=period,
            confirmations=confirmations,
            mode=mode,
            on_error=on_error,
            watches=self,
        )

    async def watch_topics(
        self, namespace: NamespaceName, topics_pattern: str, watcher: WatchReceiver
    ) -> bool:
        """Report changes to a watcher until the connection is lost; false if the server offers no such watch."""
        self._check_loop()
        if self._closed.is_set():
            raise ConnectionLost(f"the client of {self.service_url} is closed")
        return await self._service.watch(str(namespace), topics_pattern, watcher)

    async def partitioned_metadata(
        self, topic: str | TopicName, *, auto_create: bool = False, timeout: float | None = None
    ) -> int:
        """The number of partitions of a topic; 0 for one without. ``auto_create`` may create a missing topic, which is
        an error (``TopicNotFound``) otherwise.
        """
        name = _full(topic)
        return await self._ask(
            ("partitions", name, auto_create),
            lambda: self._service.partitions(name, auto_create=auto_create),
            timeout,
        )

    async def lookup(
        self, topic: str | TopicName, *, listener_name: str | None = None, timeout: float | None = None
    ) -> BrokerAddress:
        """The broker that serves a topic; redirects are followed."""
        name = _full(topic)
        return await self._ask(
            ("broker", name, listener_name),
            lambda: self._service.broker(name, listener_name=listener_name),
            timeout,
        )

    async def close(self) -> None:
        """Close all connections; requests fail, now and later. Closing again does nothing."""
        self._closed.set()
        if self._closing is None:
            self._check_loop()
            self._closing = asyncio.create_task(self._close())
        # A caller that is cancelled meanwhile leaves nothing open, and one that closes again waits for the same end.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._end is not None:
            self._end.detach()
        await self._service.close()
        await self._shared.ended()

    def __repr__(self) -> str:
        return f"<LookupClient of {self.service_url}>"

    def _check_loop(self) -> None:
        super()._check_loop()
        if self._end is None:
            self._end = weakref.finalize(self, _dropped, asyncio.get_running_loop(), self._service)
            self._end.atexit = False

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[T]], timeout: float | None) -> T:
        self._check_loop()
        seconds = self._operation_timeout if timeout is None else timeout
        check_seconds("timeout", seconds)

        async def run(_asker: None, _askers: int) -> object:
            return await self._until_answered(key, ask)

        try:
            async with asyncio.timeout(seconds):
                return cast(T, await self._shared.ask(key, run, None))
        except TimeoutError:
            reason = self._reasons.get(key) or self._service.problem
            raise OperationTimeout(
                f"{self.service_url} did not answer within {seconds:g} s{f': {reason}' if reason else ''}"
            ) from None
        except ClientError as failed:
            raise failed.copy() from None

    async def _until_answered(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, asked for again while a failure may pass."""
        failures = 0
        try:
            while True:
                if self._closed.is_set():
                    raise ConnectionLost(f"the client of {self.service_url} is closed")
                try:
                    async with self._places:
                        return await ask()
                except ClientError as failed:
                    if not is_passing(failed):
                        raise
                    self._reasons[key] = str(failed)
                failures += 1
                await ended_within(backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE), self._closed.wait())
        finally:
            self._reasons.pop(key, None)


def _service(
    url: str,
    auth: Authentication | None,
    tls: ClientTls | None,
    *,
    connect_timeout: float,
    keep_alive: float,
    client_version: str | None,
    max_answer: int,
) -> _Service:
    """The service by the scheme of its URL."""
    credentials, tls = credentials_of(url, auth, tls)
    if url.startswith(("http://", "https://")):
        from broker_core.client.http.http_service import HttpService

        return HttpService(
            url,
            client_version=client_version or default_client_version(),
            credentials=credentials,
            tls=tls,
            connect_timeout=connect_timeout,
            max_answer=max_answer,
        )
    return PulsarService(
        url,
        client_version=client_version,
        credentials=credentials,
        tls=tls,
        connect_timeout=connect_timeout,
        keep_alive=keep_alive,
        max_answer=max_answer,
    )


def credentials_of(
    url: str, auth: Authentication | None, tls: ClientTls | None
) -> tuple[Credentials | None, ClientTls | None]:
    """The credentials of a client of this URL, and its certificates."""
    if isinstance(auth, Tls):
        if not is_tls(url):
            raise InvalidServiceUrl("a client certificate needs TLS: a URL with pulsar+ssl:// or https://")
        tls = auth.added_to(tls or ClientTls())
    return auth if auth is None or isinstance(auth, Credentials) else auth.credentials, tls


def _dropped(loop: asyncio.AbstractEventLoop, service: _Service) -> None:
    """Close the connections of a client that nothing refers to any more: the event loop would keep them."""
    try:
        loop.call_soon_threadsafe(lambda: loop.create_task(service.close()))
    except RuntimeError:  # the loop is closed, and they with it
        pass


def check_seconds(name: str, seconds: float) -> None:
    """Raise :exc:`ValueError` for a wrong number of seconds: NaN would stop the timers of the whole event loop."""
    if not seconds >= 0:
        raise ValueError(f"{name} is a number of seconds, not {seconds}")


def _full(topic: str | TopicName) -> str:
    """A full name. Raises :exc:`~broker_core.errors.InvalidName`."""
    return str(topic if isinstance(topic, TopicName) else TopicName.parse(topic))
