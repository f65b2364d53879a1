"""One request of a Kafka client, as handlers get it, and what they can raise in place of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.access.asker import Asker
from broker_core.names import NamespaceName
from broker_core.servers.kafka.services import KafkaServices, Node
from broker_core.wire.kafka import Fields, RequestHeader

__all__ = ["CloseClient", "KafkaCall"]


class CloseClient(Exception):
    """The connection is to be closed, since no answer would be understood rightly: an empty listing is read as no
    topics. ``reason`` is a label of the metrics; the message is logged.
    """

    def __init__(self, message: str, reason: str = "unanswered") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class KafkaCall:
    """``body`` is the request of the version in ``header``. ``asker`` asks, in ``namespace``; its role is that of the
    principal ``User:ROLE``, and without one it is ``User:ANONYMOUS``. ``node`` is what the client's listener
    advertises. ``deadline`` is in loop time.
    """

    header: RequestHeader
    body: Fields
    asker: Asker
    namespace: NamespaceName
    node: Node
    services: KafkaServices
    deadline: float

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def principal(self) -> str:
        """The principal of ACLs."""
        return "User:ANONYMOUS" if self.asker.role is None else f"User:{self.asker.role}"
