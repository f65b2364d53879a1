"""Decisions of writes: the new state of one topic, from its current state, within the transaction that writes it.

The rules of partitions are those of a broker: docs/reference/pulsar-behaviour.md#partitions-that-a-write-may-make
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from broker_core.catalog.catalog_errors import (
    PartitionCountRefused,
    PartitionedRefused,
    PartitionRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
)
from broker_core.catalog.topic_record import TopicRecord, check_properties
from broker_core.change_log import CatalogVersion
from broker_core.counted import counted
from broker_core.names import MAX_PARTITIONS, ListedNames, TopicName, new_topic_id

__all__ = [
    "Decide",
    "TopicWrite",
    "adjustment",
    "creation",
    "deletion",
    "has_name",
    "merge",
    "replacement",
    "without_name",
]

#: Takes the topic of a name and returns its new state; ``None`` is no topic. For a missing partition it gets the topic
#: that would have it, see :func:`has_name`.
Decide = Callable[[TopicRecord | None], TopicRecord | None]


@dataclass(frozen=True, slots=True)
class TopicWrite:
    """A topic before and after a write, and the version of its namespace then."""

    before: TopicRecord | None
    after: TopicRecord | None
    version: CatalogVersion

    @property
    def changed(self) -> bool:
        """Whether anything was written."""
        return self.before != self.after


def has_name(topic: TopicRecord, name: TopicName) -> bool:
    """Whether ``name`` is the topic's own, or the name of a partition that it is listed by."""
    return topic.name == name or name.partition in topic.listed


def without_name(topic: TopicRecord, name: TopicName) -> TopicRecord | None:
    """A topic without the partition of this name; ``None`` if the name is its own, or nothing is left."""
    if topic.name == name:
        return None
    left = topic.listed.without(ListedNames.of(name.partition))
    return replace(topic, listed=left) if left else None


def creation(
    name: TopicName,
    partitions: int = 0,
    properties: Mapping[str, str] | None = None,
    *,
    configs: Mapping[str, str] | None = None,
    replication: int | None = None,
    topic_id: uuid.UUID | None = None,
) -> Decide:
    """A new topic of ``partitions`` (0: a plain one), or a missing partition of a partitioned topic.

    A new topic gets the ``configs``, the ``replication``, and the ``topic_id``, which no other topic may have, or a new
    one. Raises :exc:`TopicExists` and :exc:`PartitionRefused`.
    """
    _check_count(partitions)
    given = check_properties({} if properties is None else properties)
    own = check_properties(configs or {}, "configs")
    listed = ListedNames.partitioned(partitions)
    is_partition = name.partition >= 0

    def decide(topic: TopicRecord | None) -> TopicRecord | None:
        if topic is not None and has_name(topic, name):
            raise TopicExists.of(name)
        if is_partition:
            return _one_partition(topic, name, partitions, given, None)
        return TopicRecord(name, topic_id or new_topic_id(), listed, given, _UNWRITTEN, own, replication)

    return _with_known_configs(decide, own)


def adjustment(
    name: TopicName,
    *,
    properties: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
    configs: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
    partitions: int | None = None,
    given: Mapping[str, str] = MappingProxyType({}),
) -> Decide:
    """A topic with properties and configs changed by the given functions, and the given number of partitions.

    A partition's name may be used for properties and configs, which are its topic's. ``given`` are the configs that
    the change sets. Raises :exc:`TopicMissing` and :exc:`PartitionCountRefused`.
    """
    if partitions is not None:
        _check_count(partitions)

    def decide(topic: TopicRecord | None) -> TopicRecord | None:
        found = _there(topic, name)
        if partitions is not None and found.name != name:
            raise PartitionRefused(f"{name} is a partition: the number is that of {found.name}")
        return replace(
            found,
            listed=found.listed if partitions is None else _grown(found, partitions),
            properties=check_properties(properties(found.properties)) if properties else found.properties,
            configs=check_properties(configs(found.configs), "configs") if configs else found.configs,
        )

    return _with_known_configs(decide, given)


def replacement(
    name: TopicName,
    partitions: int,
    properties: Mapping[str, str] | None,
    *,
    may_replace: bool,
    configs: Mapping[str, str] | None = None,
) -> Decide:
    """A topic with exactly the given partitions, properties and configs, new or in place of its former ones.

    It keeps its id, and without ``configs`` its configs. Raises :exc:`TopicExists` if something else is there that it
    may not replace, :exc:`PartitionCountRefused` and :exc:`PartitionRefused`.
    """
    _check_count(partitions)
    given = check_properties({} if properties is None else properties)
    own = None if configs is None else check_properties(configs, "configs")
    if name.partition >= 0:
        return lambda topic: _one_partition(topic, name, partitions, given, own)

    def decide(topic: TopicRecord | None) -> TopicRecord | None:
        if topic is None:
            return TopicRecord(
                name, new_topic_id(), ListedNames.partitioned(partitions), given, _UNWRITTEN, own or {}
            )
        kept = topic.configs if own is None else own
        if topic.partitions == partitions and topic.properties == given and topic.configs == kept:
            return replace(topic, listed=_grown(topic, partitions))
        if not may_replace:
            raise TopicExists.of(name, ", with other partitions, properties or configs")
        return replace(topic, listed=_grown(topic, partitions), properties=given, configs=kept)

    return _with_known_configs(decide, own or {})


def merge(
    name: TopicName,
    properties: Mapping[str, str | None] | None,
    partitions: int | None = None,
    configs: Mapping[str, str | None] | None = MappingProxyType({}),
) -> Decide:
    """Set properties and configs of a topic, removing those with ``None`` (``None`` for all: all of them); let it grow.

    Raises the errors of :func:`adjustment`.
    """
    check_properties(_set_ones(properties))
    return adjustment(
        name,
        properties=lambda there: _merged(there, properties),
        configs=lambda there: _merged(there, configs),
        partitions=partitions,
        given=check_properties(_set_ones(configs), "configs"),
    )


def deletion(name: TopicName, *, partitioned: bool | None = None) -> Decide:
    """Deletion of a topic with all of its partitions; by a partition's name, only of that partition.

    ``partitioned`` restricts it to one kind of topic. Raises :exc:`TopicMissing` and
    :exc:`PartitionedRefused`.
    """

    def decide(topic: TopicRecord | None) -> TopicRecord | None:
        found = _there(topic, name)
        is_partitioned = found.name == name and bool(found.listed.ranges)
        if partitioned is False and is_partitioned:
            raise PartitionedRefused(f"{name} is a partitioned topic")
        if partitioned and not is_partitioned:
            raise PartitionedRefused(f"{name} is no partitioned topic")
        return without_name(found, name)

    return decide


def _with_known_configs(decide: Decide, given: Mapping[str, str]) -> Decide:
    """Wrap a decision: configs that it changes must be valid for topics of Kafka, else :exc:`TopicInvalid`.

    ``given`` are the configs that the change sets.
    """

    def decided(topic: TopicRecord | None) -> TopicRecord | None:
        after = decide(topic)
        if after is not None and after.configs and (topic is None or after.configs != topic.configs):
            from broker_core.kafka.configs import InvalidConfig, fault_of_given
            from broker_core.kafka.configs import check_configs as check_values

            try:
                check_values(after.configs, {})
            except InvalidConfig as error:
                raise TopicInvalid(str(error), fault_of_given(lambda: given, {})) from None
        return after

    return decided


_UNWRITTEN = datetime.fromtimestamp(0, UTC)


def _set_ones(changes: Mapping[str, str | None] | None) -> Any:
    """The entries that a merge sets; a value other than an object is returned as it is, for the check."""
    if isinstance(changes, Mapping):
        return {key: value for key, value in changes.items() if value is not None}
    return {} if changes is None else changes


def _merged(there: Mapping[str, str], changes: Mapping[str, str | None] | None) -> dict[str, str]:
    """A merge by the rules of RFC 7396."""
    if changes is None:
        return {}
    kept = {key: value for key, value in there.items() if key not in changes}
    return kept | {key: value for key, value in changes.items() if value is not None}


def _there(topic: TopicRecord | None, name: TopicName) -> TopicRecord:
    if topic is None or not has_name(topic, name):
        raise TopicMissing.of(name)
    return topic


def _check_count(partitions: int) -> None:
    if not 0 <= partitions <= MAX_PARTITIONS:
        raise TopicInvalid(f"A topic has 0 to {MAX_PARTITIONS} partitions, not {partitions}")


def _grown(topic: TopicRecord, partitions: int) -> ListedNames:
    """The names of a topic with ``partitions``, including the ones that were deleted one by one."""
    now = topic.partitions
    if partitions == now == 0:
        return topic.listed
    if not now:
        raise PartitionCountRefused(
            f"{topic.name} is a topic without partitions, and stays one", 0, partitions
        )
    if partitions < now:
        more = "there may be more of them, not"
        raise PartitionCountRefused(
            f"{topic.name} has {counted(now, 'partition')}: {more} {partitions}",
            now,
            partitions,
            f"{topic.name} has partitions: {more} as few as {partitions}",
        )
    return topic.listed | ListedNames.partitioned(partitions)


def _one_partition(
    topic: TopicRecord | None,
    name: TopicName,
    partitions: int,
    properties: Mapping[str, str],
    configs: Mapping[str, str] | None,
) -> TopicRecord:
    """The topic with the given partition, which it has room for."""
    if topic is not None and topic.name == name:  # an import may have made such a topic
        raise TopicExists.of(name)
    if partitions:
        raise PartitionRefused(f"{name} is the name of a partition, which has none of its own")
    now = 0 if topic is None else topic.partitions
    if topic is None or not now:
        raise PartitionRefused(
            f"{name} is the name of a partition: there is no topic {name.partitioned_name} with any"
        )
    if name.partition >= now:
        raise PartitionRefused(
            f"{topic.name} has {counted(now, 'partition')}, of which {name} is none",
            now,
            f"{name} is none of the partitions of {topic.name}",
        )
    if properties and properties != topic.properties:
        raise PartitionRefused(f"{name} is a partition: it has the properties of {topic.name}", now)
    if configs and configs != topic.configs:
        raise PartitionRefused(f"{name} is a partition: it has the configs of {topic.name}", now)
    return replace(topic, listed=topic.listed | ListedNames.of(name.partition))
