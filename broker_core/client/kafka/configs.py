"""Configs of topics and nodes as the admin client gives and describes them. The numbers are the protocol's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Self

from broker_core.counted import counted

__all__ = [
    "AlterConfigOp",
    "Config",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
]


class _Known(IntEnum):
    """An enum of a protocol that grows: a number without a name becomes its first member."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) and value != 0 else None


class ConfigResourceType(_Known):
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(_Known):
    """The source of a value."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class ConfigType(_Known):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigOperation(IntEnum):
    """The kinds of changes; ``APPEND`` and ``SUBTRACT`` are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A resource with configs: a topic by its name, a node by its id as text."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> Self:
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, node_id: int) -> Self:
        return cls(ConfigResourceType.BROKER, str(node_id))

    @property
    def node_id(self) -> int | None:
        """The node that alone has these configs; ``None`` if any node answers."""
        of_node = self.type in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)
        return int(self.name) if of_node and self.name.isascii() and self.name.isdecimal() else None


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """Another config that a value may come from."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One config; a sensitive one has no value. Type and documentation are from DescribeConfigs, if asked for."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


class Config(Mapping[str, ConfigEntry]):
    """The configs of a resource by name, in the order of the server."""

    def __init__(self, entries: Iterable[ConfigEntry]) -> None:
        self._entries = MappingProxyType({entry.name: entry for entry in entries})

    def __getitem__(self, name: str) -> ConfigEntry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<Config of {counted(len(self), 'entry', 'entries')}>"


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """A change of one config; ``DELETE`` has no value."""

    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET
