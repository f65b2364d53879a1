"""What a server of Pulsar's protocol is set up with."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.settings import LimitsSettings, PulsarSettings

__all__ = ["PulsarOptions"]


@dataclass(frozen=True, slots=True)
class PulsarOptions:
    """The tables of settings that a server reads, and what is known only when it is started.

    ``connections`` bounds how many clients are connected (``None``: nothing does), ``refusals`` how many are being told
    that there is no place for them. A client whose file descriptor is ``file_ceiling`` or above gets none. A client of
    the version ``own_client`` is a gateway of the same cluster, this one or another, and is refused.
    """

    pulsar: PulsarSettings = field(default_factory=PulsarSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    server_version: str = "broker-core"
    connections: int | None = None
    refusals: int = 16
    file_ceiling: int | None = None
    own_client: str | None = None
