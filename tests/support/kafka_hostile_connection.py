"""One Kafka connection without a socket, which takes any bytes: all that may come out are answers and one end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Final

from broker_core.access.clients import Client
from broker_core.access.peer import Peer
from broker_core.servers.connection import Awaited, Closing
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.callers.client_identities import ClientIdentities
from broker_core.servers.kafka.request_handler import KafkaRequestHandler
from broker_core.servers.kafka.requests.call import HandlerRow
from broker_core.servers.kafka.services import ShownNode
from broker_core.service import Logins
from broker_core.wire.kafka import APIS, MalformedMessage
from tests.support.kafka_calls import services_of
from tests.support.kafka_logins import kafka_settings

__all__ = ["HostileConnection"]

#: The real handlers where they need no topics, empty answers otherwise.
_ROWS: Final[Mapping[int, HandlerRow]] = {
    key: HANDLERS[key] if key in {17, 18, 36} else HandlerRow(api, lambda _: {}) for key, api in APIS.items()
}
#: Each client has an address of its own: nobody is slowed for the failures of others.
_PORTS = count()


class HostileConnection:
    """``logins`` are used if clients are authenticated."""

    def __init__(self, logins: Logins | None) -> None:
        services = services_of()
        if logins is not None:
            services = replace(
                services, identities=ClientIdentities(kafka_settings(), logins.admission, logins)
            )
        number = next(_PORTS)
        peer = Peer(f"2001:db8:{number >> 16 & 0xFFFF:x}:{number & 0xFFFF:x}::1", "kafka")
        self._handler = KafkaRequestHandler(
            services, _ROWS, peer, ShownNode(1, "h", 9), lambda: 0.0, Client("kafka", ""), lambda _: None
        )
        self.answers: list[bytes] = []
        self.is_over = False

    @property
    def held(self) -> int:
        """Bytes of a frame that is not whole."""
        return self._handler.splitter().buffered

    async def take(self, data: bytes) -> None:
        """Bytes as they come, until the end."""
        try:
            for message in self._handler.splitter().feed(data):
                if not self.is_over:
                    await self._message(message)
        except MalformedMessage:
            self.is_over = True

    async def _message(self, message: bytes) -> None:
        done = self._handler.handle(message)
        if isinstance(done, Awaited):
            done = await done.reply()
        if isinstance(done, Closing):
            self.is_over = True
        else:
            assert isinstance(done, bytes)
            self.answers.append(done)
