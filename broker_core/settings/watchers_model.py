"""``[watchers]``: clients that are told which topics come and go."""

from __future__ import annotations

from pydantic import Field

from broker_core.quantities import PositiveDuration
from broker_core.settings.table import Table

__all__ = ["WatchersSettings"]


class WatchersSettings(Table):
    """``[watchers]``: questions that are followed, such as those of event streams."""

    interval: PositiveDuration = Field(
        default=30.0,
        description="After so long a question that is followed is asked again though nothing told of a change: for "
        "plugins and brokers that give no signal, and for rights.",
    )
