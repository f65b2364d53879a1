"""The exchange of tokens by which a client proves its identity, whatever the mechanism, and its two ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from broker_core.access import AuthenticationFailed
from broker_core.service import Admitted

__all__ = ["Accepted", "Exchange", "SaslRefused"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The client is let in; ``token`` is the server's last one."""

    admitted: Admitted
    token: bytes = field(default=b"", repr=False)


class SaslRefused(Exception):
    """The client has not proven its identity. ``text`` is Kafka's for the client, ``None``: the common one.

    ``failure`` says more to the log alone; ``None`` if it was counted already.
    """

    def __init__(self, failure: AuthenticationFailed | None, text: str | None = None) -> None:
        super().__init__(text or str(failure))
        self.failure = failure
        self.text = text


class Exchange(Protocol):
    """One authentication by one mechanism."""

    async def step(self, token: bytes) -> bytes | Accepted:
        """The server's next token, or the end.

        Raises :exc:`SaslRefused`, :exc:`InvalidRoles` and :exc:`~broker_core.service.OtherPrincipal`.
        """
