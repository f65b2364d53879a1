"""The question: which topics of this namespace match, for whom, and by when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern

__all__ = ["Asker", "ListingRequest"]

_NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, as the transport knows it. ``role`` is authenticated; the client's version is only claimed.

    ``remote_address`` is ``HOST:PORT``, with brackets around an IPv6 host. ``connection`` is one and the
    same object for all that one connection asks, and nothing else: what takes time is shared out by it in turns.
    """

    role: str | None = None
    original_principal: str | None = None
    remote_address: str = ""
    client_version: str = ""
    protocol_version: int = 0
    transport: str = "pulsar"
    connection: object = field(default_factory=object, repr=False, compare=False)

    @property
    def host(self) -> str:
        """``remote_address`` without the port, which is another one with each connection of the same client."""
        host, _, port = self.remote_address.rpartition(":")
        if not (port.isascii() and port.isdigit()) or (":" in host and not host.startswith("[")):
            return self.remote_address  # no port: a path, or an IPv6 address alone
        return host.removeprefix("[").removesuffix("]")


async def _unlimited(_bytes: int) -> None:
    """Stands in where nobody counts memory, as in a test of a plugin that builds its own request."""


@dataclass(frozen=True, slots=True)
class ListingRequest:
    """One listing asked for; immutable, and the same object for every plugin of the chain.

    ``pattern`` is the compiled pattern with its literal, its ranges and its required substrings, or ``None`` without
    one; ``topics_hash`` the hash that the client holds already; ``properties`` what the client sent, the last of a
    repeated key (they select; they do not authorize); ``deadline`` the end of the time for this answer, on the clock of
    the running event loop (``loop.time()``, seconds).
    """

    namespace: NamespaceName
    mode: Mode = Mode.PERSISTENT
    pattern: TopicsPattern | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = field(default_factory=lambda: _NO_PROPERTIES)
    asker: Asker = field(default_factory=Asker)
    deadline: float = float("inf")
    reserve_bytes: Callable[[int], Awaitable[None]] = field(default=_unlimited, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Whoever makes the request: a plugin must not change what the next one reads.
        if type(self.properties) is not MappingProxyType:
            object.__setattr__(self, "properties", MappingProxyType(dict(self.properties)))

    @property
    def topics_pattern(self) -> str | None:
        """The pattern exactly as the client sent it, scheme included, or ``None``."""
        return None if self.pattern is None else self.pattern.raw

    async def reserve(self, size: int) -> None:
        """Wait for heap permits of ``size`` bytes in all for this request, where the estimate was too small.

        The waiting is not the plugin's time. Raises :exc:`~broker_core.errors.TooManyRequests` when the permits do not
        come in time; let it pass.
        """
        await self.reserve_bytes(size)
