"""``[watchers]``: clients that follow the topics that come and go."""

from __future__ import annotations

from pydantic import Field

from broker_core.quantities import Count, PositiveDuration
from broker_core.settings.table import Table

__all__ = ["WatchersSettings"]


class WatchersSettings(Table):
    """``[watchers]``: topic list watchers of Pulsar clients (PIP-145), and all else that follows a question."""

    enabled: bool = Field(
        default=True,
        description="Whether Pulsar clients may watch topics: CONNECTED says so. Without it they ask again and again.",
    )
    interval: PositiveDuration = Field(
        default=30.0,
        description="How often a followed question is repeated if no change was reported: for plugins and brokers "
        "that give no signal, and for rights.",
    )
    most: Count = Field(
        default=100_000,
        description="Watchers that are open at once, of all connections; one connection has 1,000.",
    )
