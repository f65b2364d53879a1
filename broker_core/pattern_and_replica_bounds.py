"""The longest pattern and the largest replication factor, for settings, names and clients."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_PATTERN", "MAX_REPLICATION"]

#: UTF-16 code units of a topics pattern that is compiled, unless the settings say otherwise.
MAX_PATTERN: Final = 1024
#: The most replicas of a topic: a number of Kafka's INT16.
MAX_REPLICATION: Final = 2**15 - 1
