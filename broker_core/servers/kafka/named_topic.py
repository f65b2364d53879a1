"""What is answered about one topic that a client named, by its name or by its id."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker_core.catalog import TopicRecord
from broker_core.wire.kafka import ZERO_ID, ErrorCode

__all__ = ["NamedTopic"]


_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class NamedTopic(NamedTuple):
    """A request may name 250,000 of them.

    ``name`` is ``None`` of an id that the client may not know the name of, ``topic_id`` zero where it is unknown.

    ``partitions`` are those that clients are shown, 0 with an error. ``record`` is the topic as the catalogue has it;
    ``None`` with an error, and where topics are not the catalogue's: such a topic has the ``told_configs``.
    """

    name: str | None
    topic_id: uuid.UUID = ZERO_ID
    partitions: int = 0
    internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    record: TopicRecord | None = None
    told_configs: Mapping[str, str] = _NONE

    @property
    def configs(self) -> Mapping[str, str]:
        """The configs that the topic sets itself, as far as they are known."""
        return self.told_configs if self.record is None else self.record.configs
