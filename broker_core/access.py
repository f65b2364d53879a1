"""What a gate is asked, and what it says to whom it does not let pass (``broker_core_authorize``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core.causes import Cause
from broker_core.listing_request import Asker
from broker_core.names import NamespaceName, TopicName

__all__ = ["ACTIONS", "Access", "Refused"]

#: What one may want to do, and in which commands. A gate meets new ones with newer servers: it refuses what it does not
#: know, or lets it pass, as its author decides.
ACTIONS: Final = {
    "list": "GET_TOPICS_OF_NAMESPACE, and each namespace of `GET /questions`",
    "describe": "PARTITIONED_METADATA",
    "lookup": "LOOKUP",
    "schema": "GET_SCHEMA",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Somebody wants to do something with a namespace, or with one topic of it; immutable.

    ``action`` is one of ``"list"``, ``"describe"``, ``"lookup"`` and ``"schema"``;
    ``topic`` is ``None`` for ``"list"``.
    """

    action: str
    namespace: NamespaceName
    topic: TopicName | None
    asker: Asker


@dataclass(frozen=True, slots=True)
class Refused:
    """It is not allowed. ``message`` is what the client is told, ``cause`` what its code is made of.

    Raises :exc:`TypeError` for a message that is no string and a cause that is no
    :class:`~broker_core.causes.Cause`, :exc:`ValueError` for an empty message.
    """

    message: str
    cause: Cause = Cause.DENIED

    def __post_init__(self) -> None:
        if not isinstance(self.message, str):
            raise TypeError(
                f"message must be a string, what the client is told, not {type(self.message).__name__}"
            )
        if not self.message:
            raise ValueError("message must say to the client what is refused, or why: it is empty")
        if not isinstance(self.cause, Cause):
            raise TypeError(
                f"cause must be a broker_core.Cause, such as Cause.DENIED, not {type(self.cause).__name__}"
            )
