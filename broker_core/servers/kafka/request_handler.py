"""What each request of one Kafka client gets. It does no input and no output: the connection does what it says.

Requests are answered in their order, one at a time. One that is not understood (an unknown API or version, bytes that
are no request) closes the connection, as Kafka does; only ApiVersions is answered in every version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from broker_core.access.asker import Asker
from broker_core.access.peer import Peer
from broker_core.names import NamespaceName
from broker_core.servers.connection import Closing, Unasked
from broker_core.servers.kafka.apis.api_versions import unsupported
from broker_core.servers.kafka.call import CloseClient, KafkaCall
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.servers.kafka.request_job import RequestJob, closing
from broker_core.servers.kafka.services import KafkaServices, Node
from broker_core.wire.kafka import (
    API_VERSIONS,
    FrameSplitter,
    MalformedMessage,
    Reader,
    read_header,
    response_frame,
)

__all__ = ["KafkaRequestHandler"]

#: Characters of a client id that are kept.
_CLIENT_ID: Final = 256
#: Looks of the keep-alive in which a stranger must be authenticated.
_STRANGER: Final = 2


class KafkaRequestHandler:
    """The state of one client. ``clock`` is that of the event loop."""

    __slots__ = (
        "_asker",
        "_clock",
        "_handlers",
        "_idle",
        "_namespace",
        "_node",
        "_peer",
        "_services",
        "_splitter",
        "client",
        "draining",
        "heard",
    )

    def __init__(
        self,
        services: KafkaServices,
        handlers: Mapping[int, HandlerRow],
        peer: Peer,
        node: Node,
        clock: Callable[[], float],
        _unasked: Unasked,
    ) -> None:
        self._services = services
        self._handlers = handlers
        self._peer = peer
        self._node = node
        self._clock = clock
        self._idle = 0
        #: Known once the client is authenticated, or where nobody has to be.
        self._asker: Asker | None = Asker(remote_address=peer.remote_address, transport="kafka")
        self._namespace = NamespaceName.parse(services.options.kafka.namespace)
        self._splitter = FrameSplitter(services.options.largest_request)
        #: What the client calls itself.
        self.client = ""
        self.heard = True
        self.draining = False

    def splitter(self) -> FrameSplitter:
        return self._splitter

    def is_bad_frame(self, error: Exception) -> bool:
        return isinstance(error, MalformedMessage)

    def closed(self) -> None:
        """The connection is over."""

    def tick(self, *, quiet: bool) -> Closing | None:
        """Give a client up that is silent for long, or does not say who it is."""
        self._idle = 0 if self.heard or not quiet else self._idle + 1
        self.heard = False
        if self._asker is None and self._idle >= _STRANGER:
            return Closing("handshake", "peer was silent", {"waiting_for": "its credentials"})
        if self._idle >= self._services.options.times.idle:
            return Closing("keep_alive", "peer was silent", {"waiting_for": "a request"})
        return None

    def handle(self, message: bytes) -> bytes | RequestJob | Closing | None:
        if self.draining:
            return None  # the client sees its connection end, and asks again over another
        reader = Reader(message)
        header = read_header(reader)
        row = self._handlers.get(header.api_key)
        if row is None or header.api_version not in row.api.versions:
            if header.api_key == API_VERSIONS.key:
                return b"".join(response_frame(API_VERSIONS, 0, header.correlation_id, unsupported()))
            raise MalformedMessage(f"no API {header.api_key} of version {header.api_version}")
        asker = self._asker
        if asker is None and not row.before_authentication:
            return Closing("authentication", "request before authentication", {"api": row.api.name})
        if row.api.is_flexible(header.api_version):
            reader.skip_tags()
        body = row.api.read_request(reader, header.api_version)
        self.client = header.client_id[:_CLIENT_ID]
        call = KafkaCall(
            header=header,
            body=body,
            asker=asker or Asker(remote_address=self._peer.remote_address, transport="kafka"),
            namespace=self._namespace,
            node=self._node,
            services=self._services,
            deadline=self._clock() + self._services.options.time_budget,
        )
        try:
            fields = None if row.now is None else row.now(call)
        except CloseClient as error:
            return closing(row, error)
        if fields is not None:
            return b"".join(response_frame(row.api, header.api_version, header.correlation_id, fields))
        assert row.later is not None, f"{row.api.name} has no answer"
        return RequestJob(row, row.later, call)
