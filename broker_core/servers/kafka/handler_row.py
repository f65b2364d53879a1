"""The row of an API in the table of handlers: which versions are answered, by which functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from broker_core.servers.kafka.call import KafkaCall
from broker_core.wire.kafka import Api, Fields

__all__ = ["AnswerLater", "AnswerNow", "HandlerRow"]

#: Gives the answer at once, in less than a millisecond, or ``None`` where that takes waiting.
AnswerNow: TypeAlias = Callable[[KafkaCall], "Fields | None"]
#: Gives the answer within the deadline of the call.
AnswerLater: TypeAlias = Callable[[KafkaCall], Awaitable[Fields]]


@dataclass(frozen=True, slots=True)
class HandlerRow:
    """One of ``now`` and ``later`` at least. Both give the fields of the response; they may raise
    :exc:`~.call.CloseClient`, and any other error closes the connection as an error of this server.

    ``advertised`` says whether ApiVersions tells of it; ``shown_from`` is the first version that it tells of, where
    that is not the first one that is understood.
    """

    api: Api
    now: AnswerNow | None = None
    later: AnswerLater | None = None
    advertised: bool = True
    shown_from: int | None = None
