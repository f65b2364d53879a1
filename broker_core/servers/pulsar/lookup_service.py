"""The common interface of the parts that answer the lookup commands."""

from __future__ import annotations

from typing import Protocol

from broker_core.access import Asker
from broker_core.memory import Keep
from broker_core.wire.pulsar import BaseCommand, FeatureFlags

__all__ = ["LookupService"]


class LookupService(Protocol):
    """Answers the commands of :data:`broker_core.wire.pulsar.lookup_commands.LOOKUP_COMMANDS`."""

    @property
    def feature_flags(self) -> FeatureFlags:
        """The feature flags of these commands for CONNECTED."""

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        """The whole frame that answers the command, mostly its refusal too. The first one asks rules and gates.

        ``keep`` is given the permits of a large frame, which are its own to release; without it they are given back.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
