"""One request of a Kafka client, as handlers get it, and what they can raise in place of an answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from broker_core.memory.permit_errors import PermitError
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.services import KafkaServices, Node
from broker_core.wire.kafka import Fields, RequestHeader

__all__ = ["CloseClient", "KafkaCall"]

_Result = TypeVar("_Result")

#: Elements of a request that are looked at on the event loop, all together.
_FEW: Final = 200


class CloseClient(Exception):
    """The connection is to be closed, since no answer would be understood rightly: an empty listing is read as no
    topics. ``reason`` is a label of the metrics; the message is logged.
    """

    def __init__(self, message: str, reason: str = "unanswered") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCall(Caller):
    """``body`` is the request of the version in ``header``. ``node`` is what the client's listener advertises.

    ``began`` is when the request came, in loop time, ``size`` the bytes of a large one. ``unchanged`` is what was
    already as the request wants it: names of topics, and bindings of ACLs. Clients are not told; the audit log is.
    """

    header: RequestHeader
    body: Fields
    node: Node
    services: KafkaServices
    began: float = 0.0
    size: int = 0
    unchanged: set[Hashable] = field(default_factory=set, repr=False, compare=False)

    @property
    def version(self) -> int:
        return self.header.api_version

    async def off_loop(self, count: int, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """What ``work`` makes of ``count`` elements of the request: here, or beside the loop where they are many."""
        if count <= _FEW:
            return work(*arguments)
        return await self.services.large_requests.beside(self.size, work, *arguments)

    async def hold(self, size: int) -> None:
        """Hold heap permits for so many bytes of the answer, until it has left. Raises :exc:`CloseClient`."""
        heap = self.services.pipeline.permits.heap
        try:
            self.held.append(await heap.acquire(size, key=self.asker.connection))
        except PermitError:
            raise CloseClient("no memory for the answer") from None
