"""How a gateway deals with the cluster behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.settings import PulsarSettings, UpstreamSettings

__all__ = ["UpstreamOptions"]


@dataclass(frozen=True, slots=True)
class UpstreamOptions:
    """Times in seconds, sizes in bytes.

    A relayed lookup is answered within ``lookup_timeout``, below the 20 s after which no client has a use
    for it, by at most ``lookups`` at a time. A request waits ``connection_wait`` for a connection while there is none.
    ``max_message_size`` is what this server tells its clients: the brokers must say the same.

    docs/reference/pulsar-behaviour.md#how-long-a-client-waits, docs/reference/pulsar-behaviour.md#frame-limits
    """

    upstream: UpstreamSettings
    pulsar: PulsarSettings = field(default_factory=PulsarSettings)
    lookup_connections: int = 2
    lookup_timeout: float = 15.0
    lookups: int = 10_000
    listing_connections: int = 4
    listing_timeout: float = 27.0
    listings: int = 64
    connection_wait: float = 5.0
    connect_timeout: float = 5.0
    first_backoff: float = 0.1
    longest_backoff: float = 2.0
    client_version: str | None = None
