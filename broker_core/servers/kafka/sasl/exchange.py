"""The exchange of tokens by which a client proves who it is, whatever the mechanism, and its two ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.principal import Principal
from broker_core.access.sessions import ClientCredentials

__all__ = ["Accepted", "Exchange", "SaslRefused"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The client is ``principal``; ``token`` is the server's last one. ``credentials`` are those that can be passed on
    to a Pulsar cluster, if any.
    """

    principal: Principal
    token: bytes = field(default=b"", repr=False)
    credentials: ClientCredentials | None = None


class SaslRefused(Exception):
    """The client has proven nothing. ``text`` is Kafka's for the client, ``None``: the one for every mechanism.

    ``failure`` says more to the log alone; ``None`` where it was counted already.
    """

    def __init__(self, failure: AuthenticationFailed | None, text: str | None = None) -> None:
        super().__init__(text or str(failure))
        self.failure = failure
        self.text = text


class Exchange(Protocol):
    """One authentication by one mechanism."""

    async def step(self, token: bytes) -> bytes | Accepted:
        """The server's next token, or the end; raises :exc:`SaslRefused`."""
