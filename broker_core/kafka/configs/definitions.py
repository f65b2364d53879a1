"""The topic configs of Apache Kafka 4.3: types, defaults, ranges, and the broker configs that they inherit from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from broker_core.kafka.configs.config_types import ConfigType, ConfigValue, parse_value, value_text
from broker_core.kafka.configs.value_rules import (
    ValueRule,
    anything,
    between,
    gzip_level,
    one_of,
    some_of,
    throttled_replicas,
)

__all__ = ["DEFINITIONS", "MIN_INSYNC_REPLICAS", "PARSE_ORDER", "ConfigDefinition"]

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

_MOST: Final = str(2**63 - 1)
_WEEK: Final = "604800000"


@dataclass(frozen=True, slots=True)
class ConfigDefinition:
    """A topic config. ``synonyms`` are the broker configs that give its default, the most important first; each with
    its own default, or ``None``. ``distinct``: a list has no element twice.
    """

    name: str
    kind: ConfigType
    default: str
    rule: ValueRule = anything
    synonyms: tuple[tuple[str, str | None], ...] = ()
    distinct: bool = False

    def parse(self, text: str) -> ConfigValue:
        """The value of a text. Raises :exc:`~.config_types.InvalidConfig`."""
        value = parse_value(self.kind, self.name, text)
        self.rule(self.name, value)
        if self.distinct and isinstance(value, tuple):
            return tuple(dict.fromkeys(value))
        return value

    def shown(self, text: str) -> str:
        """A value in the form of DescribeConfigs, which may differ from the given text."""
        return value_text(self.parse(text))


def _of(
    name: str,
    kind: ConfigType,
    default: str,
    rule: ValueRule = anything,
    *synonyms: str | tuple[str, str | None],
    distinct: bool = False,
) -> ConfigDefinition:
    """A definition; a synonym that is only a name has the default of the topic config."""
    brokers = tuple((each, default) if isinstance(each, str) else each for each in synonyms)
    return ConfigDefinition(name, kind, default, rule, brokers, distinct)


_T = ConfigType
_POSITIVE: Final = between(1)
_NOT_NEGATIVE: Final = between(0)
# In the order in which Kafka checks values: a client gets the first fault.
_ALL: Final = (
    _of("segment.bytes", _T.INT, "1073741824", between(1048576), "log.segment.bytes"),
    _of("segment.ms", _T.LONG, _WEEK, _POSITIVE, ("log.roll.ms", None), ("log.roll.hours", "168")),
    _of(
        "segment.jitter.ms",
        _T.LONG,
        "0",
        _NOT_NEGATIVE,
        ("log.roll.jitter.ms", None),
        ("log.roll.jitter.hours", "0"),
    ),
    _of("segment.index.bytes", _T.INT, "10485760", between(4), "log.index.size.max.bytes"),
    _of("flush.messages", _T.LONG, _MOST, _POSITIVE, "log.flush.interval.messages"),
    _of(
        "flush.ms",
        _T.LONG,
        _MOST,
        _NOT_NEGATIVE,
        ("log.flush.interval.ms", None),
        "log.flush.scheduler.interval.ms",
    ),
    _of("retention.bytes", _T.LONG, "-1", anything, "log.retention.bytes"),
    _of(
        "retention.ms",
        _T.LONG,
        _WEEK,
        between(-1),
        ("log.retention.ms", None),
        ("log.retention.minutes", None),
        ("log.retention.hours", "168"),
    ),
    _of("max.message.bytes", _T.INT, "1048588", _NOT_NEGATIVE, "message.max.bytes"),
    _of("index.interval.bytes", _T.INT, "4096", _NOT_NEGATIVE, "log.index.interval.bytes"),
    _of("delete.retention.ms", _T.LONG, "86400000", _NOT_NEGATIVE, "log.cleaner.delete.retention.ms"),
    _of("min.compaction.lag.ms", _T.LONG, "0", _NOT_NEGATIVE, "log.cleaner.min.compaction.lag.ms"),
    _of("max.compaction.lag.ms", _T.LONG, _MOST, _POSITIVE, "log.cleaner.max.compaction.lag.ms"),
    _of("file.delete.delay.ms", _T.LONG, "60000", _NOT_NEGATIVE, "log.segment.delete.delay.ms"),
    _of("min.cleanable.dirty.ratio", _T.DOUBLE, "0.5", between(0, 1), "log.cleaner.min.cleanable.ratio"),
    _of(
        "cleanup.policy", _T.LIST, "delete", some_of("compact", "delete"), "log.cleanup.policy", distinct=True
    ),
    _of("unclean.leader.election.enable", _T.BOOLEAN, "false", anything, "unclean.leader.election.enable"),
    _of(MIN_INSYNC_REPLICAS, _T.INT, "1", _POSITIVE, MIN_INSYNC_REPLICAS),
    _of(
        "compression.type",
        _T.STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.type",
    ),
    _of("compression.gzip.level", _T.INT, "-1", gzip_level, "compression.gzip.level"),
    _of("compression.lz4.level", _T.INT, "9", between(1, 17), "compression.lz4.level"),
    _of("compression.zstd.level", _T.INT, "3", between(-131072, 22), "compression.zstd.level"),
    _of("preallocate", _T.BOOLEAN, "false", anything, "log.preallocate"),
    _of(
        "message.timestamp.type",
        _T.STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        "log.message.timestamp.type",
    ),
    _of(
        "message.timestamp.before.max.ms",
        _T.LONG,
        _MOST,
        _NOT_NEGATIVE,
        "log.message.timestamp.before.max.ms",
    ),
    _of(
        "message.timestamp.after.max.ms",
        _T.LONG,
        "3600000",
        _NOT_NEGATIVE,
        "log.message.timestamp.after.max.ms",
    ),
    _of("leader.replication.throttled.replicas", _T.LIST, "", throttled_replicas),
    _of("follower.replication.throttled.replicas", _T.LIST, "", throttled_replicas),
    _of("remote.storage.enable", _T.BOOLEAN, "false"),
    _of("local.retention.ms", _T.LONG, "-2", between(-2), "log.local.retention.ms"),
    _of("local.retention.bytes", _T.LONG, "-2", between(-2), "log.local.retention.bytes"),
    _of("remote.log.copy.disable", _T.BOOLEAN, "false"),
    _of("remote.log.delete.on.disable", _T.BOOLEAN, "false"),
)
#: The names in the order in which values are checked.
PARSE_ORDER: Final = tuple(each.name for each in _ALL)
#: The definitions by name, sorted.
DEFINITIONS: Final[Mapping[str, ConfigDefinition]] = MappingProxyType(
    {each.name: each for each in sorted(_ALL, key=lambda each: each.name)}
)
