"""What answers the lookup commands: the commands, and the protocol of the parts that answer them."""

from __future__ import annotations

from typing import Protocol

from broker_core.access.asker import Asker
from broker_core.wire.pulsar import BaseCommand, FeatureFlags

__all__ = ["LOOKUP_COMMANDS", "MOST_PARTITIONS", "LookupService"]

#: The commands that :class:`LookupService` answers.
LOOKUP_COMMANDS = frozenset({BaseCommand.PARTITIONED_METADATA, BaseCommand.LOOKUP, BaseCommand.GET_SCHEMA})

#: The field of the answer is unsigned, but Java and Go read it into a signed int.
MOST_PARTITIONS = 2**31 - 1


class LookupService(Protocol):
    """Answers PARTITIONED_METADATA, LOOKUP and GET_SCHEMA."""

    @property
    def feature_flags(self) -> FeatureFlags:
        """What CONNECTED may promise of these commands."""

    async def answer(self, command: BaseCommand, asker: Asker, /) -> bytes:
        """The whole frame that answers the command, mostly its refusal too.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
