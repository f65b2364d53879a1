"""CreatePartitions: more partitions of topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from broker_core.catalog import Edit, PartitionCountRefused, TopicRecord, TopicWrite, merge
from broker_core.counted import counted
from broker_core.kafka.acls import Operation
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.row_error import RowError, error_of
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.servers.kafka.topics.new_topic import wrong_replicas
from broker_core.service import AuditRow, right_to
from broker_core.wire.kafka import CREATE_PARTITIONS, ErrorCode, Fields

__all__ = ["CREATE_PARTITIONS_ROW"]

#: The most partitions that one request may add.
_MOST_ADDED: Final = 10_000


async def _create(call: KafkaCall) -> Fields:
    requested: Sequence[Fields] = call.body["topics"]
    changes = call.changes(len(requested))
    counts = Counter(row["name"] for row in requested)
    errors: dict[str, RowError | None] = {
        name: RowError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name, count in counts.items()
        if count > 1
    }
    rows = {row["name"]: row for row in requested if row["name"] not in errors}
    topics = await call.services.named.by_name(
        call, list(rows), operation=Operation.ALTER, action=right_to("add_partitions")
    )
    errors |= _checked(call, topics, rows)
    grown = [name for name in rows if errors[name] is None]
    if not call.body["validate_only"]:
        edits = []
        for name in grown:
            topic, count = call.topic(name), rows[name]["count"]
            edits.append(Edit(topic, merge(topic, {}, count), _has_fewer(name, count)))
        call.attempt.allowed(edit.topic for edit in edits)
        done = await changes.change(call.attempt, edits, call.change_deadline)
        for name, each in zip(grown, done, strict=True):
            if isinstance(each, PartitionCountRefused):
                errors[name] = _wrong_count(name, each.partitions, rows[name]["count"])
            elif not isinstance(each, TopicWrite):
                errors[name] = error_of(each)
    return {"results": [_row(name, error) for name, error in errors.items()]}


def _all_refused(call: KafkaCall, error: RowError) -> Fields:
    return {"results": [_row(row["name"], error) for row in call.body["topics"]]}


def _checked(
    call: KafkaCall, topics: Sequence[NamedTopic], rows: Mapping[str, Fields]
) -> dict[str, RowError | None]:
    errors: dict[str, RowError | None] = {}
    left = _MOST_ADDED
    for topic in topics:
        assert topic.name is not None
        row = rows[topic.name]
        error = _check(call, topic, row)
        if error is None:
            left -= row["count"] - _now(topic)
            if left < 0:
                error = RowError(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        errors[topic.name] = error
    return errors


def _now(topic: NamedTopic) -> int:
    """The present number of partitions: the catalogue's, whatever a plugin that describes topics says."""
    return topic.partitions if topic.record is None else max(topic.record.partitions, 1)


def _check(call: KafkaCall, topic: NamedTopic, row: Fields) -> RowError | None:
    """The first error of a row, in Kafka's order."""
    if topic.error is ErrorCode.INVALID_TOPIC_EXCEPTION:
        return RowError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if topic.error:
        return RowError(topic.error, topic.message)
    assert topic.name is not None
    count, now, assignments = row["count"], _now(topic), row["assignments"]
    if count <= now:
        return _wrong_count(topic.name, now if call.may_list(topic.name) else None, count)
    if assignments is not None:
        added = count - now
        if len(assignments) != added:
            which = f"{added} additional partition(s)" if call.may_list(topic.name) else "partitions"
            return RowError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {which}, but only {len(assignments)} assignment(s) were specified.",
            )
        for each in assignments:
            wrong = wrong_replicas(each["broker_ids"], call.node.node_id)
            if wrong is not None:
                return wrong
    if topic.record is not None and not topic.record.partitions:
        return _no_partitions(topic.name)
    return None


def _has_fewer(name: str, count: int) -> Callable[[TopicRecord | None], None]:
    """A check within the transaction that the topic still has fewer partitions: another client may have added some."""

    def check(topic: TopicRecord | None) -> None:
        if topic is not None and topic.partitions >= count:
            raise PartitionCountRefused(
                f"Topic {name} has {counted(topic.partitions, 'partition')}",
                topic.partitions,
                count,
                f"Topic {name} has partitions",
            )

    return check


def _wrong_count(name: str, now: int | None, count: int) -> RowError:
    """The error of a wrong number of partitions.

    ``now`` is 0 for a topic without partitions, which is shown with one, and ``None`` if the client may not know it.
    """
    if now is None:
        return RowError(ErrorCode.INVALID_PARTITIONS, f"{count} would not be an increase.")
    if now == count:
        return RowError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
    if count < now:
        return RowError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {name} currently has {now} partition(s); {count} would not be an increase.",
        )
    return _no_partitions(name)


def _no_partitions(name: str) -> RowError:
    return RowError(
        ErrorCode.POLICY_VIOLATION, f"The topic {name} is one without partitions, and cannot get any."
    )


def _row(name: str, error: RowError | None) -> Fields:
    return {"name": name} | ({} if error is None else error.fields)


def _results(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    """The results of the topics, with the wanted numbers."""
    counts = {row["name"]: row["count"] for row in call.body["topics"]}
    for row in fields["results"]:
        numbers = {"partitions": counts[row["name"]]}
        yield row_of(call.full_name(row["name"]), row.get("error_code", 0), numbers)


CREATE_PARTITIONS_ROW: Final = HandlerRow(
    CREATE_PARTITIONS, partial(audited, "add_partitions", _create, _results, _all_refused)
)
