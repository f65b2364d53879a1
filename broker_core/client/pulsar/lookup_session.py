"""A lookup session: one connection to a Pulsar broker, or broker-core, asked for topics, partitions and brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Protocol, Self, TypeAlias

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ServerRefused,
    UnexpectedAnswer,
    server_error,
)
from broker_core.client.client_tls import ClientTls
from broker_core.client.loop_bound import LoopBound
from broker_core.client.pulsar.credentials import Credentials, OriginalPrincipal
from broker_core.client.pulsar.lookup_connection import Admit, LookupConnection, RawAnswer
from broker_core.client.pulsar.service_url import ServiceUrl
from broker_core.client.pulsar.topics_answer import TopicsAnswer
from broker_core.concurrency import in_thread
from broker_core.errors import ServerError
from broker_core.names import Mode
from broker_core.wire.pulsar import (
    LOOKUP_COMMANDS,
    BaseCommand,
    CommandConnected,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    CommandWatchTopicUpdate,
    commands,
)

__all__ = [
    "BrokerAddress",
    "LookupSession",
    "TopicSchema",
    "WatchReceiver",
    "broker_of",
    "default_client_version",
    "software_version",
]

Encode: TypeAlias = Callable[[int], bytes]

_LARGE: Final = 64 * 1024  # bytes; an answer that is larger is read in a thread


@cache
def software_version() -> str:
    """The version of this package; ``0`` of a source tree that is not installed."""
    try:
        return version("broker-core")
    except PackageNotFoundError:
        return "0"


def default_client_version() -> str:
    """``broker-core-<version>``: a server that knows it sends answers of any size."""
    return f"broker-core-{software_version()}"


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The target of a LOOKUP: connect there, or (``redirect``) ask there again with ``authoritative``."""

    url: str | None
    url_tls: str | None
    redirect: bool
    authoritative: bool
    proxy_through_service_url: bool


def broker_of(answer: BaseCommand, service_url: ServiceUrl) -> BrokerAddress:
    """The broker that an answer to LOOKUP names. Raises :exc:`ServerRefused` and :exc:`UnexpectedAnswer`."""
    body = answer.lookupTopicResponse
    if body.response == CommandLookupTopicResponse.Failed or body.HasField("error"):
        raise ServerRefused(*server_error(body.error, body.message))
    if body.response not in (CommandLookupTopicResponse.Connect, CommandLookupTopicResponse.Redirect):
        raise UnexpectedAnswer(f"{service_url} answered with the unknown outcome {body.response}")
    return BrokerAddress(
        url=body.brokerServiceUrl or None,
        url_tls=body.brokerServiceUrlTls or None,
        redirect=body.response == CommandLookupTopicResponse.Redirect,
        authoritative=body.authoritative,
        proxy_through_service_url=body.proxy_through_service_url,
    )


@dataclass(frozen=True, slots=True)
class TopicSchema:
    """A schema as the registry holds it; ``type`` is the number of Pulsar's ``Schema.Type``."""

    name: str
    type: int
    data: bytes
    properties: Mapping[str, str]
    version: bytes


class WatchReceiver(Protocol):
    """The receiver of a watch's updates; called on the event loop."""

    @property
    def known_hash(self) -> str | None:
        """The hash of the known topics."""

    def began(self, topics_hash: str, /) -> None:
        """Note that the watch is open, and the topics have this hash; updates may have come before."""

    def update(self, message: CommandWatchTopicUpdate, /) -> None:
        """Note that topics came or went."""


async def _names_are_not_read(_size: int) -> None:
    """Admit an answer of any size: of all names in the answer to a watch only the hash is read."""


class LookupSession(LoopBound):
    """One connection to a service URL, used as ``async with LookupSession("pulsar://host:port") as session``.

    ``operation_timeout`` and ``keep_alive`` in seconds; ``max_frame`` bounds an answer, in bytes with its header (no
    bound by default); ``on_lost`` is called once the connection is no longer open. ``tls`` is for ``pulsar+ssl://``,
    with ``ClientTls()`` as default; ``original`` is the principal that a proxy asks for. Requests may run side by side.
    A lost connection fails them with :exc:`~broker_core.client.ConnectionLost` and stays lost: make another
    session. All methods raise :exc:`~broker_core.client.ClientError`.
    """

    def __init__(
        self,
        service_url: str,
        *,
        client_version: str | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        max_frame: int | None = None,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
        original: OriginalPrincipal | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self.service_url = ServiceUrl.parse(service_url)
        self.client_version = client_version or default_client_version()
        self._operation_timeout = operation_timeout
        self._open = partial(
            LookupConnection.open,
            client_version=self.client_version,
            tls=(tls or ClientTls()) if self.service_url.is_tls else None,
            credentials=credentials,
            original=original,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            max_frame=max_frame,
            on_lost=on_lost,
        )
        self._connection: LookupConnection | None = None

    async def connect(self, *, first: int = 0) -> None:
        """Connect to the first address of the URL that answers, beginning with the one at ``first``."""
        addresses = self.service_url.addresses
        for attempt in range(len(addresses)):
            try:
                self._connection = await self._open(addresses[(first + attempt) % len(addresses)])
                return
            except ClientError:
                if attempt + 1 == len(addresses):
                    raise

    async def close(self) -> None:
        """Close the connection; pending requests fail."""
        if self._connection is not None:
            await self._connection.close()

    def abort(self) -> None:
        """Close the connection at once, without waiting for the end of its socket."""
        if self._connection is not None:
            self._connection.abort(ConnectionLost(f"the connection to {self.service_url} was closed"))

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def pending(self) -> int:
        """Requests that wait for their answer."""
        return 0 if self._connection is None else self._connection.pending

    @property
    def unwanted(self) -> int:
        """Requests that were given up, and that the server still has."""
        return 0 if self._connection is None else self._connection.unwanted

    @property
    def server(self) -> CommandConnected:
        """The server's own facts: its version, protocol version, limits and feature flags."""
        return self._connected.server

    @property
    def _connected(self) -> LookupConnection:
        if self._connection is None:
            raise ConnectionLost(f"not connected to {self.service_url}")
        return self._connection

    async def get_topics(
        self,
        namespace: str,
        mode: Mode = Mode.PERSISTENT,
        pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        admit: Admit | None = None,
    ) -> TopicsAnswer:
        """The topics of a namespace, or the answer that they still have ``topics_hash``.

        ``admit`` is awaited with its size before an answer of more than 64 KiB is read; its errors are raised here.
        """
        raw = await self._ask(
            lambda request_id: commands.get_topics(
                request_id,
                namespace,
                mode,
                topics_pattern=pattern,
                topics_hash=topics_hash,
                properties=properties,
            ),
            BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE,
            timeout,
            admit,
        )
        assert not isinstance(raw, BaseCommand)
        answer = TopicsAnswer(raw) if len(raw) <= _LARGE else await in_thread(namespace, TopicsAnswer, raw)
        if not answer.changed and (topics_hash is None or answer.topics_hash not in (None, topics_hash)):
            raise UnexpectedAnswer(
                f"{self.service_url} says unchanged to the topics hash {topics_hash!r}, with {answer.topics_hash!r}"
            )
        return answer

    async def watch(
        self, namespace: str, pattern: str, watcher: WatchReceiver, *, timeout: float | None = None
    ) -> bool:
        """Watch the persistent topics of a namespace (PIP-145) until the connection is lost, or this is cancelled.

        False if the server offers no watches, or none of this question. Servers whose hashes count system topics (they
        lack the flag of reconciliation) offer none here. docs/reference/pulsar-behaviour.md#topic-list-watchers
        """
        connection, flags = self._connected, self.server.feature_flags
        if not (flags.supports_topic_watchers and flags.supports_topic_watcher_reconcile):
            return False
        watcher_id, known_hash = connection.new_id(), watcher.known_hash
        connection.watchers[watcher_id] = watcher.update
        try:
            answer = await self._ask_for(
                BaseCommand.WATCH_TOPIC_LIST_SUCCESS,
                lambda request_id: commands.watch_topics(
                    request_id, watcher_id, namespace, pattern, known_hash
                ),
                timeout,
                _names_are_not_read,
            )
            watcher.began(answer.watchTopicListSuccess.topics_hash)
            await connection.until_lost()
        except ServerRefused as refused:
            if refused.code is not ServerError.NotAllowedError:
                raise
            return False
        finally:
            if connection.watchers.pop(watcher_id, None) is not None:
                connection.send_unanswered(lambda request_id: commands.close_watcher(request_id, watcher_id))
        return True

    async def partitioned_metadata(
        self, topic: str, auto_create: bool = True, *, timeout: float | None = None
    ) -> int:
        """The number of partitions of a topic; 0 for one without. ``auto_create`` may create a missing topic."""
        answer = await self._ask_for(
            BaseCommand.PARTITIONED_METADATA_RESPONSE,
            lambda request_id: commands.partitioned_metadata(request_id, topic, auto_create=auto_create),
            timeout,
        )
        body = answer.partitionMetadataResponse
        if body.response == CommandPartitionedTopicMetadataResponse.Failed or body.HasField("error"):
            raise ServerRefused(*server_error(body.error, body.message))
        if body.response != CommandPartitionedTopicMetadataResponse.Success:
            raise UnexpectedAnswer(f"{self.service_url} answered with the unknown outcome {body.response}")
        return body.partitions

    async def lookup(
        self,
        topic: str,
        *,
        authoritative: bool = False,
        listener_name: str | None = None,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> BrokerAddress:
        """The broker that serves a topic; a redirect is not followed here."""
        answer = await self.look_up(
            topic,
            authoritative=authoritative,
            listener_name=listener_name,
            properties=properties,
            timeout=timeout,
        )
        return broker_of(answer, self.service_url)

    async def look_up(
        self,
        topic: str,
        *,
        authoritative: bool = False,
        listener_name: str | None = None,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> BaseCommand:
        """The answer to a LOOKUP unchanged, even if it is a refusal."""
        return await self._ask_for(
            BaseCommand.LOOKUP_RESPONSE,
            lambda request_id: commands.lookup(
                request_id,
                topic,
                authoritative=authoritative,
                listener_name=listener_name,
                properties=properties,
            ),
            timeout,
        )

    async def get_schema(
        self, topic: str, schema_version: bytes | None = None, *, timeout: float | None = None
    ) -> TopicSchema | None:
        """The schema of a topic, or ``None`` if it has none."""
        answer = await self._ask_for(
            BaseCommand.GET_SCHEMA_RESPONSE,
            lambda request_id: commands.get_schema(request_id, topic, schema_version),
            timeout,
        )
        body = answer.getSchemaResponse
        if body.HasField("error_code"):
            refused = ServerRefused(*server_error(body.error_code, body.error_message))
            if refused.code is ServerError.TopicNotFound:
                return None
            raise refused
        if not body.HasField("schema"):
            return None
        schema = body.schema
        properties = {pair.key: pair.value for pair in schema.properties}
        return TopicSchema(schema.name, schema.type, schema.schema_data, properties, body.schema_version)

    async def raw(
        self, command: BaseCommand, *, timeout: float | None = None, admit: Admit | None = None
    ) -> BaseCommand:
        """Forward another client's lookup command, under a request id of ours.

        ``command`` is changed by that; ``admit`` is as in :meth:`get_topics`. The answer comes as the server sent it,
        with our request id, which means nothing; an ERROR is raised as
        :exc:`~broker_core.client.ServerRefused`.
        """
        row = LOOKUP_COMMANDS[command.type]
        body = row.request_body(command)

        def encode(request_id: int) -> bytes:
            body.request_id = request_id
            return commands.encode(command)

        return await self._ask_for(row.response, encode, timeout, admit)

    async def _ask(
        self, encode: Encode, kind: int, timeout: float | None, admit: Admit | None = None
    ) -> RawAnswer:
        return await self._connected.request(
            encode, kind, timeout=self._operation_timeout if timeout is None else timeout, admit=admit
        )

    async def _ask_for(
        self, kind: int, encode: Encode, timeout: float | None, admit: Admit | None = None
    ) -> BaseCommand:
        answer = await self._ask(encode, kind, timeout, admit)
        assert isinstance(answer, BaseCommand)
        return answer
