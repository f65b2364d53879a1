"""The handler of one Kafka client's requests. It does no input and no output: the connection does what it returns.

Requests are answered in their order, one at a time. If clients are authenticated, requests of strangers are for the
:class:`~.sasl.sasl_session.SaslSession` of the connection. A request that is not understood (an unknown API or version,
bytes that are no request) closes the connection, as Kafka does; only ApiVersions is answered in every version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from broker_core.access import Asker, Client, Peer, Principal
from broker_core.errors import QuotaExceeded
from broker_core.servers.connection import Awaited, Closing
from broker_core.servers.kafka.apis.api_versions import unsupported
from broker_core.servers.kafka.large_requests import LARGE
from broker_core.servers.kafka.request_metrics import CLOSED, error_in
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.request_job import RequestJob, closing
from broker_core.servers.kafka.sasl.sasl_session import SaslSession
from broker_core.servers.kafka.services import KafkaServices, ShownNode
from broker_core.service import Ended, QuotaTurn
from broker_core.wire.kafka import (
    API_VERSIONS,
    MAX_REQUEST,
    MAX_REQUEST_BEFORE_LOGIN,
    Fields,
    FrameSplitter,
    MalformedMessage,
    Reader,
    RequestHeader,
    read_header,
    response_frame,
)

__all__ = ["KafkaRequestHandler"]

#: Characters of a client id that are kept.
_CLIENT_ID: Final = 256
#: Characters of the name of a client's software, and of its version.
_SOFTWARE: Final = 64
#: The most seconds for which a client whose quota has no room is held, until its connection is closed.
_MOST_HELD: Final = 5.0
#: Bytes of a request whose rows stay bytes that is read on the event loop, in a millisecond at most; and of one that
#: has the rows of the client's request before it.
_FEW_ROWS: Final = 8 * 1024
_KNOWN_ROWS: Final = 256 * 1024
#: Intervals of the keep-alive in which a client must authenticate.
_UNAUTHENTICATED: Final = 2


class KafkaRequestHandler:
    """The state of one client. ``clock`` is that of the event loop."""

    __slots__ = (
        "_asker",
        "_client",
        "_clock",
        "_handlers",
        "_idle",
        "_live",
        "_looks",
        "_namespace",
        "_node",
        "_peer",
        "_sasl",
        "_send",
        "_services",
        "_software",
        "_splitter",
        "client",
        "draining",
        "has_received",
    )

    #: Always false: a Kafka client gets nothing but answers.
    watches: Final = False

    def __init__(
        self,
        services: KafkaServices,
        handlers: Mapping[int, HandlerRow],
        peer: Peer,
        node: ShownNode,
        clock: Callable[[], float],
        client: Client,
        send: Callable[[bytes | Closing], None],
    ) -> None:
        self._services = services
        self._client = client
        self._handlers = handlers
        self._peer = peer
        self._node = node
        self._clock = clock
        self._idle = 0
        self._looks = 0
        self._software = ""
        identities = services.identities
        admitted = identities.of_connection(peer)
        #: The session of its certificate, or of a client without credentials, until it proves another identity.
        self._live = identities.begin(admitted, self._ended)
        self._send = send
        self._sasl: SaslSession | None = None
        #: The asker, known once the client is authenticated, or at once if clients need not be.
        self._asker: Asker | None = None
        if identities.mechanisms:
            assert identities.logins is not None
            known = admitted is not None
            self._sasl = SaslSession(
                identities.logins,
                lambda: identities.mechanisms,
                peer,
                admit=self._admit,
                send=send,
                known=known,
            )
        self._namespace = identities.namespace(None)
        self._splitter = FrameSplitter(MAX_REQUEST_BEFORE_LOGIN)
        if self._sasl is None or admitted is not None:
            self._let_in(None if admitted is None else admitted.role)
        #: The client's name for itself.
        self.client = ""
        self.has_received = True
        self.draining = False

    def splitter(self) -> FrameSplitter:
        return self._splitter

    def has_room(self) -> None:
        """Do nothing: only answers are sent."""

    def is_bad_frame(self, error: Exception) -> bool:
        return isinstance(error, MalformedMessage)

    def closed(self) -> None:
        """Note the end of the connection."""
        if self._live is not None:
            self._live.cancel()
        if self._sasl is not None:
            self._sasl.closed()

    def tick(self, *, quiet: bool) -> Closing | None:
        """Give up a client that is silent for long, or has not proven an identity, whatever else it says."""
        self._idle = 0 if self.has_received or not quiet else self._idle + 1
        self.has_received = False
        if self._asker is None:
            self._looks += 1
            if self._looks >= _UNAUTHENTICATED:
                return Closing("handshake", "client is not authenticated", {"waiting_for": "its credentials"})
            return None
        if self._idle >= self._services.options.times.idle:
            return Closing("keep_alive", "peer was silent", {"waiting_for": "a request"})
        return None

    def handle(self, message: bytes) -> bytes | RequestJob | Closing | Awaited | None:
        if self.draining:
            return None  # the client sees its connection end, and asks again over another
        sasl = self._sasl
        if sasl is not None and sasl.takes_bare_tokens:
            return sasl.bare_token(message)
        reader = Reader(message)
        header = read_header(reader)
        row = self._handlers.get(header.api_key)
        if row is None or header.api_version not in row.api.versions:
            if header.api_key == API_VERSIONS.key and not (sasl is not None and sasl.takes(API_VERSIONS.key)):
                return b"".join(response_frame(API_VERSIONS, 0, header.correlation_id, unsupported()))
            raise MalformedMessage(f"no API {header.api_key} of version {header.api_version}")
        if row.api.is_flexible(header.api_version):
            reader.skip_tags()
        if sasl is not None and sasl.takes(header.api_key):
            self.client = header.client_id[:_CLIENT_ID]
            done = sasl.handle(row.api, header, lambda: row.api.read_request(reader, header.api_version))
            if sasl.takes_bare_tokens:
                self._splitter.least = 0
            return done
        self.client = header.client_id[:_CLIENT_ID]
        self._client.asks(row.api.name, str(self._namespace))
        try:
            turn = self._turn(row)
        except QuotaExceeded as exceeded:
            return Awaited(partial(_closed_later, exceeded))
        if len(message) > LARGE and row.api is not API_VERSIONS:
            front = self._services.front
            kept = None if front is None else front.requests.get(self._client)
            reader.known = None if kept is None else kept.rows
            read = partial(row.read_request, reader, header.api_version)
            few = _FEW_ROWS if kept is None or not kept.rows.are_in(message) else _KNOWN_ROWS
            is_quick = row.read is not None and len(message) <= few
            return RequestJob(row, self._call(header, {}, turn, len(message)), read=read, is_quick=is_quick)
        call = self._call(header, row.read_request(reader, header.api_version), turn)
        if call.turn is not None:
            return RequestJob(row, call)
        return self._answer(row, call)

    def _turn(self, row: HandlerRow) -> QuotaTurn | None:
        """The turn of a request, if a quota matches it. Raises :exc:`~broker_core.errors.QuotaExceeded`."""
        quotas = self._services.quotas
        if not quotas.on or row.api is API_VERSIONS or self._asker is None:
            return None
        return quotas.turn(self._asker, str(self._namespace))

    def _call(self, header: RequestHeader, body: Fields, turn: QuotaTurn | None, size: int = 0) -> KafkaCall:
        began = self._clock()
        return KafkaCall(
            header=header,
            body=body,
            turn=turn,
            asker=self._asker or Asker(remote_address=self._peer.remote_address, transport="kafka"),
            namespace=self._namespace,
            node=self._node,
            services=self._services,
            deadline=began + self._services.options.time_budget,
            began=began,
            size=size,
        )

    def _answer(self, row: HandlerRow, call: KafkaCall) -> bytes | RequestJob | Closing:
        if row.api is not API_VERSIONS and not self._services.authorizer.is_current(call):
            return RequestJob(row, call)
        try:
            fields = row.answer(call)
        except CloseClient as error:
            self._services.requests.ended(row.api.name, CLOSED, self._clock() - call.began)
            return closing(row, error)
        if isinstance(fields, dict):
            if row.api is API_VERSIONS and not fields.get("error_code"):
                self._note_versions(call.body)
            frame = b"".join(response_frame(row.api, call.version, call.header.correlation_id, fields))
            self._services.requests.ended(row.api.name, error_in(fields), self._clock() - call.began)
            return frame
        return RequestJob(row, call, fields)

    def _note_versions(self, body: Fields) -> None:
        """Note that the client has asked for the versions, and mostly named itself."""
        if self._sasl is not None:
            self._sasl.versions_sent()
        name, version = body["client_software_name"], body["client_software_version"]
        if name:
            self._software = f"{name[:_SOFTWARE]}-{version[:_SOFTWARE]}"
            if self._asker is not None:
                self._asker = replace(self._asker, client_version=self._software)
                self._client.identified(self._asker)

    def _admit(self, principal: Principal) -> Asker:
        """Admit a client that has proven its identity."""
        if self._live is not None:
            self._live.cancel()
        return self._let_in(principal.role)

    def _ended(self, why: Ended) -> None:
        self._send(Closing(*why))

    def _let_in(self, role: str | None) -> Asker:
        identities = self._services.identities
        asker = self._asker = identities.asker(role, self._peer, self._software, connection=self._client)
        self._client.identified(asker)
        self._namespace = identities.namespace(asker.role)
        self._splitter.max_size = MAX_REQUEST
        return asker


async def _closed_later(exceeded: QuotaExceeded) -> Closing:
    """Hold a client that would wait for too long, then close it: Kafka's protocol has no answer for this."""
    await asyncio.sleep(min(exceeded.retry_after, _MOST_HELD))
    return Closing("quota", "quota of a client is used up", {"message": exceeded.message})
