"""What a server of Pulsar's protocol is set up with."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.servers.pulsar.listing_command import RequestBounds

__all__ = ["PulsarOptions"]


@dataclass(frozen=True, slots=True)
class PulsarOptions:
    """Times are in seconds, sizes in bytes. ``max_message_size`` is told to clients and bounds frames both ways.

    A peer has ``write_timeout`` for each piece of an answer, and for a large answer as a whole the time besides that it
    takes at ``min_write_rate`` (bytes a second, 0: any).

    ``connections`` and ``connections_per_address`` bound how many clients are connected (``None`` and 0: neither does),
    ``refusals`` how many are being told that there is no place for them. A client whose file descriptor is
    ``file_ceiling`` or above gets none.
    """

    max_message_size: int = 5 * 1024 * 1024
    keep_alive: float = 30.0
    write_timeout: float = 15.0
    min_write_rate: int = 256 * 1024
    concurrent_lookups: int = 50_000
    bounds: RequestBounds = field(default_factory=RequestBounds)
    server_version: str = "broker-core"
    connections: int | None = None
    connections_per_address: int = 0
    refusals: int = 16
    file_ceiling: int | None = None
