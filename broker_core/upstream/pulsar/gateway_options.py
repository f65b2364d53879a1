"""Options of a gateway for the cluster behind it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from broker_core.client.failover import PoolOptions
from broker_core.settings import PulsarSettings, UpstreamSettings

__all__ = ["UpstreamOptions", "gateway_mark"]


def gateway_mark(service_url: str) -> str:
    """The name that the gateways of one cluster give themselves, so that none asks another, or itself."""
    return hashlib.sha256(service_url.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class UpstreamOptions:
    """Times in seconds, sizes in bytes.

    A relayed lookup is answered within ``lookup_timeout``, below the 20 s after which no client has a use for it; at
    most ``lookups`` are under way at a time. A request waits ``connection_wait`` for a connection while there is none;
    an attempt has ``connect_timeout`` for the credentials and as much for the broker, so that a request learns why.
    ``max_message_size`` is the limit that this server gives its clients: the brokers must have the same.

    A broker that has not answered CONNECT after ``patience`` has the next address tried beside it. A connection without
    data, not even a PONG, for ``silence`` to twice ``silence`` is dead: a lookup can still be asked again in time.
    There are at most ``connections`` in all, for all principals; the connections of a principal that asked nothing for
    ``idle`` are closed. A broker that keeps no connection of the gateway open is asked for one each ``probe_pause``.

    Brokers get ``client_version``, which is of this server alone, so that it recognizes itself if a redirect leads
    back.

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
    connect_timeout: float = 4.0
    patience: float = 1.0
    silence: float = 4.0
    connections: int = 256
    idle: float = 60.0
    probe_pause: float = 30.0
    first_backoff: float = 0.1
    longest_backoff: float = 2.0
    client_version: str | None = None

    @property
    def pool(self) -> PoolOptions:
        """The options of a pool of connections."""
        return PoolOptions(
            connection_wait=self.connection_wait,
            patience=self.patience,
            first_backoff=self.first_backoff,
            longest_backoff=self.longest_backoff,
        )
