"""The credentials of a connection, and the principal that it asks for."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

__all__ = ["Credentials", "OriginalPrincipal"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """An authentication method and its data. ``data`` is called for every handshake and every challenge, and may be a
    coroutine function; its errors fail the connection.

    The method ``tls`` has no data: the client's certificate identifies it.
    """

    method: str = "none"
    data: Callable[[], bytes | Awaitable[bytes]] | None = field(default=None, repr=False)

    async def current(self) -> bytes | None:
        """The current data."""
        if self.data is None:
            return None
        data = self.data()
        return await data if inspect.isawaitable(data) else data


@dataclass(frozen=True, slots=True)
class OriginalPrincipal:
    """The principal that a proxy asks for: its name and, for servers that verify it, its own credentials."""

    name: str
    credentials: Credentials | None = None
