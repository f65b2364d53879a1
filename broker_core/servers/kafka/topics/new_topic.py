"""A wanted new topic, checked as Kafka does before it looks whether there is such a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from broker_core.kafka import why_illegal
from broker_core.kafka.configs import InvalidConfig, check_configs
from broker_core.names import PERSISTENT, NamespaceName, TopicName
from broker_core.servers.kafka.row_error import ChangeRefused, RowError
from broker_core.settings import KafkaSettings
from broker_core.wire.kafka import ErrorCode, Fields

__all__ = ["TopicToCreate", "check_partitions", "new_name", "new_topic", "wrong_replicas"]

#: Partitions of all topics of a request.
_MOST_PARTITIONS: Final = 10_000


class TopicToCreate(NamedTuple):
    """A new topic: ``replicas`` is the number in the answer, ``replication`` the number that the client wanted."""

    name: TopicName
    partitions: int
    replicas: int
    replication: int | None
    configs: Mapping[str, str]

    @property
    def records(self) -> int:
        """The number of records of Kafka's metadata log that the topic would take."""
        return 1 + self.partitions + len(self.configs)


def check_partitions(requested: Sequence[Fields], kafka: KafkaSettings) -> None:
    """Raise the error of all rows of a request that asks for too many partitions."""
    total = 0
    for row in requested:
        usual = kafka.num_partitions if row["num_partitions"] == -1 else row["num_partitions"]
        total += len(row["assignments"] or ()) or usual
        if total > _MOST_PARTITIONS:
            text = "Excessively large number of partitions per request."
            raise ChangeRefused(RowError(ErrorCode.POLICY_VIOLATION, text))


def new_name(local: str, namespace: NamespaceName) -> TopicName | RowError:
    """The name of a new topic, or why no topic can be made by it: Kafka cannot have it, or no listing can."""
    illegal = why_illegal(local)
    if illegal is not None:
        return RowError(ErrorCode.INVALID_TOPIC_EXCEPTION, illegal)
    name = TopicName(PERSISTENT, namespace, local)
    if name.partition >= 0:
        return RowError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: '{local}' is that of a partition"
        )
    if name.is_system:
        return RowError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: '{local}' is that of a system topic, which is not listed",
        )
    return name


def new_topic(
    row: Fields, namespace: NamespaceName, kafka: KafkaSettings, node_id: int
) -> TopicToCreate | RowError:
    """The topic of a row of CreateTopics, or the first thing that is wrong with it."""
    name = new_name(row["name"], namespace)
    if isinstance(name, RowError):
        return name
    configs, wrong = _configs(row["configs"], kafka.configs)
    if wrong is not None:
        return wrong
    if row["assignments"]:
        return _assigned(row, name, configs, node_id)
    return _counted(row, name, configs, kafka)


def _configs(
    given: Sequence[Mapping[str, Any]], broker: Mapping[str, str]
) -> tuple[Mapping[str, str], RowError | None]:
    if not given:  # as most
        return {}, None
    nulls = [each["name"] for each in given if each["value"] is None]
    if nulls:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        return {}, RowError(ErrorCode.INVALID_CONFIG, text)
    configs = {each["name"]: each["value"] for each in given}
    try:
        check_configs(configs, broker)
    except InvalidConfig as error:
        return {}, RowError(ErrorCode.INVALID_CONFIG, str(error))
    return configs, None


def _counted(
    row: Fields, name: TopicName, configs: Mapping[str, str], kafka: KafkaSettings
) -> TopicToCreate | RowError:
    requested, partitions = row["replication_factor"], row["num_partitions"]
    if requested < -1 or requested == 0:
        return RowError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions < -1 or partitions == 0:
        return RowError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    replicas = kafka.replication_factor if requested == -1 else requested
    if replicas > 1 and kafka.replication == "strict":
        return RowError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} "
            "cannot be reached because only 1 broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    count = kafka.num_partitions if partitions == -1 else partitions
    return TopicToCreate(name, count, replicas, None if requested == -1 else requested, configs)


def _assigned(
    row: Fields, name: TopicName, configs: Mapping[str, str], node_id: int
) -> TopicToCreate | RowError:
    """A topic whose partitions are assigned to brokers, all of them to the only one."""
    for field, words in (("replication_factor", "replication factor"), ("num_partitions", "numPartitions")):
        if row[field] != -1:
            return RowError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {words} was not set to -1.",
            )
    indices: set[int] = set()
    for each in row["assignments"]:
        index = each["partition_index"]
        if index in indices:
            return _misassigned(f"Found multiple manual partition assignments for partition {index}")
        indices.add(index)
        wrong = wrong_replicas(each["broker_ids"], node_id)
        if wrong is not None:
            return wrong
    if indices != set(range(len(indices))):
        return _misassigned("partitions should be a consecutive 0-based integer sequence")
    return TopicToCreate(name, len(indices), 1, None, configs)


def wrong_replicas(brokers: Sequence[int], node_id: int) -> RowError | None:
    """The error of the brokers that a partition is assigned to."""
    if not brokers:
        return _misassigned("The manual partition assignment includes an empty replica list.")
    for broker in sorted(brokers):
        if broker != node_id:
            return _misassigned(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
    if len(brokers) > 1:
        return _misassigned(f"The manual partition assignment includes the broker {node_id} more than once.")
    return None


def _misassigned(text: str) -> RowError:
    return RowError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
