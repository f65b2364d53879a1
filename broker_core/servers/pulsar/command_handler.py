"""The handler of a Pulsar client's commands: the handshake (CONNECT), the keep-alive (PING), listings and lookups.

If clients are authenticated, a :class:`~broker_core.servers.pulsar.handshake.Handshake` stands between CONNECT and
CONNECTED. From then on the client's :class:`~broker_core.access.asker.Asker` has its role: all its questions are of
this asker.

It does no input and no output: :class:`~broker_core.servers.connection.client_connection.ClientConnection` does what it
returns. A bad request is a ``CommandError`` with its request id, and the connection lives on. Request ids are the
client's business: they may repeat, and nothing here is keyed by them (Go uses one again for every retry).

PING is answered before any limit is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, Self, TypeAlias

from broker_core.access import Asker, Client, Peer
from broker_core.errors import Cause, ListingFailed, ServerError, lookup_code
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline, QuestionText
from broker_core.servers.admission import FileBudget, RequestSlots
from broker_core.servers.connection import Awaited, Closing, FrameSender, QuotaJob
from broker_core.servers.pulsar.client_watchers import ClientWatchers, Watching, WatchJob
from broker_core.servers.pulsar.handshake import Handshake, announced_message_size
from broker_core.servers.pulsar.listing_job import (
    OWN_CLIENTS,
    ClientPatterns,
    ListingClient,
    ListingJob,
    SmallAnswers,
    SmallListingJob,
    question_of,
    question_text,
    read_listing_request,
)
from broker_core.servers.pulsar.lookup_job import LookupJob, namespace_of_lookup
from broker_core.service import Admission, Ended, LiveSession, LookupService, Quotas
from broker_core.settings import LimitsSettings, PulsarSettings, Settings, WatchersSettings
from broker_core.wire.pulsar import (
    LARGE,
    LOOKUP_COMMANDS,
    BaseCommand,
    CommandConnect,
    CommandGetTopicsOfNamespace,
    FeatureFlags,
    FrameDecoder,
    FrameError,
    TooManyElements,
    commands,
    decode_large,
    frame_limit,
)

__all__ = ["PulsarCommandHandler", "PulsarOptions", "PulsarServices"]

#: A frame to send, a job to do, a wait, the end, or nothing.
Answered: TypeAlias = bytes | ListingJob | SmallListingJob | LookupJob | WatchJob
Reply: TypeAlias = Answered | QuotaJob | Awaited | Closing | None

_PING: Final = BaseCommand.PING

#: Repeated parts of a command that are decoded, if the settings allow fewer properties.
_ELEMENTS: Final = 1000

#: Clients that read frames of any size; an unknown one has the limit. docs/reference/pulsar-behaviour.md#frame-limits
_WITHOUT_FRAME_LIMIT: Final = ("Pulsar-CPP-", OWN_CLIENTS)


@dataclass(frozen=True, slots=True)
class PulsarServices:
    """The parts that the handlers of all clients of a server use.

    ``slots`` are the places for requests under way. ``identify`` changes the identity of a client. ``admission``
    authenticates clients; without it, nobody is authenticated. Without ``watching``, nobody may watch.
    """

    pipeline: Pipeline
    lookups: LookupService
    metrics: Metrics
    options: PulsarOptions
    slots: RequestSlots
    identify: Callable[[Asker], Asker]
    small_answers: SmallAnswers
    admission: Admission | None = None
    watching: Watching | None = None
    client_patterns: ClientPatterns | None = None
    quotas: Quotas = field(default_factory=Quotas)

    @property
    def feature_flags(self) -> FeatureFlags:
        """The feature flags of CONNECTED."""
        flags = FeatureFlags()
        flags.CopyFrom(self.lookups.feature_flags)
        if self.watching is not None:
            flags.supports_topic_watchers = flags.supports_topic_watcher_reconcile = True
        return flags


class PulsarCommandHandler:
    """The state of one client. ``clock`` is the event loop's; ``sender`` sends frames without a command."""

    __slots__ = (
        "_asker",
        "_client",
        "_clock",
        "_frame_limit",
        "_handshake",
        "_listing_client",
        "_live",
        "_peer",
        "_sender",
        "_services",
        "_watchers",
        "draining",
        "has_received",
    )

    def __init__(
        self,
        services: PulsarServices,
        peer: Peer,
        clock: Callable[[], float],
        client: Client,
        sender: FrameSender,
    ) -> None:
        self._services = services
        self._client = client
        self._peer = peer
        self._clock = clock
        self._handshake: Handshake | None = None
        self._live: LiveSession | None = None  # of a server that authenticates nobody
        self._sender = sender
        admission = services.admission
        if admission is not None and admission.authenticator.enabled:
            version = services.options.server_version
            self._handshake = Handshake(admission, peer, version, admit=self._admit, sender=sender)
        elif admission is not None:
            self._live = admission.live.begin(None, self._ended)
        self._watchers: ClientWatchers | None = None  # made with the first of them
        self._asker: Asker | None = None  # known once the handshake is done
        self._frame_limit = frame_limit(services.options.pulsar.max_message_size)
        self._listing_client = ListingClient(services.pipeline, services.metrics, self._frame_limit)
        self.has_received = True
        self.draining = False

    @property
    def client(self) -> str:
        return self._asker.client_version if self._asker is not None else ""

    @property
    def watches(self) -> bool:
        return self._watchers is not None and len(self._watchers) > 0

    def closed(self) -> None:
        """Note the end of the connection."""
        if self._handshake is not None:
            self._handshake.closed()
        if self._live is not None:
            self._live.cancel()
        if self._watchers is not None:
            self._watchers.closed()

    def _ended(self, why: Ended) -> None:
        """Close a client that was let in without authentication, which is needed from now on."""
        self._sender.send(Closing(*why))

    def has_room(self) -> None:
        if self._watchers is not None:
            self._watchers.has_room()

    def splitter(self) -> FrameDecoder:
        return FrameDecoder(self._frame_limit)

    def is_bad_frame(self, error: Exception) -> bool:
        return isinstance(error, FrameError)

    def tick(self, *, quiet: bool) -> bytes | Closing | None:
        """PING of an interval, as brokers send one to each client; the end of a client silent since the former one."""
        if self._asker is None:
            is_checked = self._handshake is not None and self._handshake.has_begun
            waiting_for = "the check of its credentials" if is_checked else "CONNECT"
            return Closing("handshake", "peer was silent", {"waiting_for": waiting_for})
        if not quiet:
            return None
        if not self.has_received:
            return Closing("keep_alive", "peer was silent", {"waiting_for": "PONG"})
        if self._asker.protocol_version < 1:
            return None
        self.has_received = False
        return commands.ping()

    def handle(self, command: bytes) -> Reply:
        try:
            if len(command) <= LARGE:
                decoded = commands.decode(command)
            else:
                decoded = decode_large(command, max(_ELEMENTS, self._services.options.limits.properties))
        except TooManyElements as bomb:
            return self._refuse_bomb(bomb)
        kind = decoded.type
        if kind == _PING:
            return commands.pong()
        if self.draining:
            return None  # the client sees its connection end, and asks again over another
        asker = self._asker
        if asker is None:
            return self._handle_unconnected(decoded)
        do = self._COMMANDS.get(kind)
        if do is not None:
            return do(self, decoded, asker)
        return _refuse(
            decoded,
            f"{commands.command_name(kind)} belongs to a broker, and this server only answers lookups: send it to the "
            "broker that LOOKUP names",
        )

    def _refuse_bomb(self, bomb: TooManyElements) -> bytes | None:
        """Refuse a command of which nothing is known but its type and the number of its request."""
        command = bomb.command
        if self._asker is None or command.type != BaseCommand.GET_TOPICS_OF_NAMESPACE:
            return _refuse(command, str(bomb))
        failure = ListingFailed(str(bomb), cause=Cause.BAD_REQUEST, reason="bad_request")
        request_id = command.getTopicsOfNamespace.request_id
        return self._listing_client.refuse(request_id, QuestionText(None), self._asker, failure)

    def _handle_unconnected(self, command: BaseCommand) -> Reply:
        """The reaction to a command of a client that has not sent CONNECT."""
        if command.type == BaseCommand.PONG:
            return None
        if command.type != BaseCommand.CONNECT:
            return _refuse(command, "Send CONNECT first")
        connect = command.connect
        if connect.proxy_to_broker_url:
            # Answered as if connected, the client would send its data here.
            return _refuse(command, "This server is no proxy: it does not pass connections on to brokers")
        if connect.client_version and connect.client_version == self._services.options.own_client():
            # Each of its lookups would come here again, without end.
            return _refuse(
                command,
                "This server is asked by a gateway of the same cluster: its address is given as that of a broker",
            )
        if self._handshake is not None:
            return self._handshake.begin(connect)
        return self._admit(connect, None, None)[1]

    def _admit(
        self, connect: CommandConnect, role: str | None, original_principal: str | None
    ) -> tuple[Asker, bytes]:
        """Let the client in: its asker from now on, and the frame of CONNECTED."""
        services = self._services
        protocol_version = max(0, min(commands.PROTOCOL_VERSION, connect.protocol_version))
        asker = self._asker = services.identify(
            Asker(
                role=role,
                original_principal=original_principal,
                remote_address=self._peer.remote_address,
                client_version=connect.client_version[:256],
                protocol_version=protocol_version,
                connection=self._client,
            )
        )
        self._client.identified(asker)
        announced = announced_message_size(asker.client_version, services.options.pulsar)
        if asker.client_version.startswith(_WITHOUT_FRAME_LIMIT):
            self._listing_client = replace(self._listing_client, frame_limit=None)
        elif announced != services.options.pulsar.max_message_size:
            self._listing_client = replace(self._listing_client, frame_limit=frame_limit(announced))
        return asker, commands.connected(
            services.options.server_version,
            protocol_version=protocol_version,
            max_message_size=announced,
            feature_flags=services.feature_flags,
        )

    def _renew(self, command: BaseCommand, _asker: Asker) -> Reply:
        """AUTH_RESPONSE: new credentials in place of expired ones."""
        return self._handshake.renew(command) if self._handshake is not None else None

    def _connect_again(self, command: BaseCommand, _asker: Asker) -> Reply:
        return _refuse(command, "This connection is connected already")

    def _in_turn(
        self,
        asker: Asker,
        namespace: str,
        handle: Callable[[], Answered],
        refuse: Callable[[ListingFailed], bytes],
    ) -> Reply:
        """The reaction to a question, once the quotas of the client have room for it."""
        if not self._services.quotas.on:
            return handle()
        try:
            turn = self._services.quotas.turn(asker, namespace)
        except ListingFailed as exceeded:
            return refuse(exceeded)
        return handle() if turn is None else QuotaJob(turn, handle, refuse)

    def _list(self, command: BaseCommand, asker: Asker) -> Reply:
        question = command.getTopicsOfNamespace
        self._client.asks("GET_TOPICS_OF_NAMESPACE", question.namespace)
        if not self._services.quotas.on:
            return self._listed(question, asker, self._clock())

        def refuse(failure: ListingFailed) -> bytes:
            return self._listing_client.refuse(question.request_id, question_text(question), asker, failure)

        handle = partial(self._listed, question, asker, self._clock())
        return self._in_turn(asker, question.namespace, handle, refuse)

    def _listed(self, question: CommandGetTopicsOfNamespace, asker: Asker, began: float) -> Answered:
        services, client = self._services, self._listing_client
        request_id = question.request_id
        pipeline = client.pipeline
        if services.client_patterns is not None and question.topics_pattern:
            services.client_patterns.note(asker, question.topics_pattern)
        at_once = not services.slots.are_taken
        key = question_of(question) if at_once else None
        if key is not None:
            again = services.small_answers.again(key, asker, request_id, client.frame_limit)
            if again is not None:
                return SmallListingJob(client, request_id, *again)
        try:
            request, uncompiled = read_listing_request(
                question, asker, pipeline, services.options.limits, began
            )
            answer = pipeline.answer_now(request) if at_once and uncompiled is None else None
        except ListingFailed as failure:
            return client.refuse(request_id, question_text(question), asker, failure)
        if answer is not None and key is not None:
            frame = services.small_answers.keep(key, request_id, client.frame_limit, request, answer)
            if frame is not None:
                return SmallListingJob(client, request_id, frame, answer.release)
        return ListingJob(client, request_id, request, uncompiled, answer)

    def _look_up(self, command: BaseCommand, asker: Asker) -> Reply:
        services = self._services
        deadline = self._clock() + services.pipeline.options.time_budget
        namespace = namespace_of_lookup(command)
        self._client.asks(commands.command_name(command.type), namespace)

        def refuse(failure: ListingFailed) -> bytes:
            return commands.refuse(command, lookup_code(failure.code), failure.message)

        return self._in_turn(
            asker, namespace, lambda: LookupJob(services.lookups, command, asker, deadline), refuse
        )

    def _watch(self, command: BaseCommand, asker: Asker) -> Reply:
        watching, watch = self._services.watching, command.watchTopicList
        self._client.asks("WATCH_TOPIC_LIST", watch.namespace)
        if watching is None:
            return _refuse(
                command, "Unable to create topic list watcher: this server has no watchers, ask again instead"
            )
        if self._watchers is None:
            self._watchers = ClientWatchers(watching, self._listing_client, asker, self._sender)
        if not self._services.quotas.on:
            return self._watchers.watch(watch, self._clock())

        def refuse(failure: ListingFailed) -> bytes:
            return commands.error(watch.request_id, failure.code, failure.message)

        handle = partial(self._watchers.watch, watch, self._clock())
        return self._in_turn(asker, watch.namespace, handle, refuse)

    def _close_watcher(self, command: BaseCommand, _asker: Asker) -> Reply:
        body = command.watchTopicListClose
        if self._watchers is not None:
            self._watchers.close_watcher(body.watcher_id)
        return commands.success(body.request_id)

    def _nothing(self, _command: BaseCommand, _asker: Asker) -> Reply:
        return None

    #: The methods for commands of a connected client, by type.
    _COMMANDS: ClassVar[Mapping[int, Callable[[PulsarCommandHandler, BaseCommand, Asker], Reply]]] = (
        MappingProxyType(
            {
                BaseCommand.GET_TOPICS_OF_NAMESPACE: _list,
                BaseCommand.PONG: _nothing,  # that something was heard is all
                BaseCommand.CONNECT: _connect_again,
                BaseCommand.AUTH_RESPONSE: _renew,
                BaseCommand.WATCH_TOPIC_LIST: _watch,
                BaseCommand.WATCH_TOPIC_LIST_CLOSE: _close_watcher,
                **dict.fromkeys(LOOKUP_COMMANDS, _look_up),
            }
        )
    )


def _refuse(command: BaseCommand, message: str) -> bytes | None:
    """Refuse a command that has no place here; one that nobody waits for an answer of is dropped."""
    if not commands.is_answered(command) and command.type != BaseCommand.CONNECT:
        return None
    return commands.refuse(command, ServerError.NotAllowedError, message)


@dataclass(slots=True)
class PulsarOptions:
    """The tables of settings that a server reads, and values that are known only at its start.

    ``connections`` bounds how many clients are connected (``None``: no bound), ``refusals`` how many clients are under
    refusal for lack of a place. A client whose file descriptor is ``file_ceiling`` or above gets no place. A client of
    the version ``own_client`` is a gateway of the same cluster, this one or another, and is refused.
    """

    pulsar: PulsarSettings = field(default_factory=PulsarSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    watchers: WatchersSettings = field(default_factory=WatchersSettings)
    server_version: str = "broker-core"
    connections: int | None = None
    refusals: int = 16
    file_ceiling: int | None = None
    own_client: Callable[[], str | None] = lambda: None

    @classmethod
    def of(
        cls, settings: Settings, files: FileBudget, version: str, own_client: Callable[[], str | None]
    ) -> Self:
        """The options of a broker of a ``version`` with these settings, and with the budget ``files``."""
        connections = settings.limits.connections
        return cls(
            settings.pulsar,
            settings.limits,
            settings.watchers,
            server_version=f"broker-core {version}",
            connections=files.clients if connections == "auto" else connections,
            refusals=files.refusals,
            file_ceiling=files.ceiling,
            own_client=own_client,
        )
