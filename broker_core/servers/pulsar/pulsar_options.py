"""Options of a server of Pulsar's protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from broker_core.servers.admission import FileBudget
from broker_core.settings import LimitsSettings, PulsarSettings, Settings, WatchersSettings

__all__ = ["PulsarOptions"]


@dataclass(slots=True)
class PulsarOptions:
    """The tables of settings that a server reads, and values that are known only at its start.

    ``connections`` bounds how many clients are connected (``None``: no bound), ``refusals`` how many clients are under
    refusal for lack of a place. A client whose file descriptor is ``file_ceiling`` or above gets no place. A client of
    the version ``own_client`` is a gateway of the same cluster, this one or another, and is refused.
    """

    pulsar: PulsarSettings = field(default_factory=PulsarSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    watchers: WatchersSettings = field(default_factory=WatchersSettings)
    server_version: str = "broker-core"
    connections: int | None = None
    refusals: int = 16
    file_ceiling: int | None = None
    own_client: Callable[[], str | None] = lambda: None

    @classmethod
    def of(
        cls, settings: Settings, files: FileBudget, version: str, own_client: Callable[[], str | None]
    ) -> Self:
        """The options of a broker of a ``version`` with these settings, and with the budget ``files``."""
        connections = settings.limits.connections
        return cls(
            settings.pulsar,
            settings.limits,
            settings.watchers,
            server_version=f"broker-core {version}",
            connections=files.clients if connections == "auto" else connections,
            refusals=files.refusals,
            file_ceiling=files.ceiling,
            own_client=own_client,
        )
