"""Options of a server of Kafka's protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from broker_core.settings import KafkaSettings, LimitsSettings

__all__ = ["ConnectionTimes", "KafkaOptions"]

#: Bytes of a request, and of one before the client is authenticated (Kafka's sasl.server.max.receive.size).
_LARGEST_REQUEST: Final = 16 * 1024 * 1024
_LARGEST_BEFORE: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class ConnectionTimes:
    """The times of connections, in seconds, and ``min_write_rate`` in bytes a second.

    A client is looked at every ``keep_alive`` seconds; one without requests at ``idle`` looks is closed, and one that
    is not authenticated after two.
    """

    write_timeout: float = 15.0
    min_write_rate: int = 256 * 1024
    keep_alive: float = 30.0
    idle: int = 20


@dataclass(slots=True)
class KafkaOptions:
    """The tables of settings that a server reads, and values that are known only at its start.

    ``connections`` bounds how many clients are connected (``None``: no bound). A client whose file descriptor is
    ``file_ceiling`` or above gets no place. ``time_budget`` is the seconds that one request may take.
    """

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    times: ConnectionTimes = field(default_factory=ConnectionTimes)
    connections: int | None = None
    file_ceiling: int | None = None
    time_budget: float = 25.0
    largest_request: int = _LARGEST_REQUEST
    largest_before_authentication: int = _LARGEST_BEFORE
