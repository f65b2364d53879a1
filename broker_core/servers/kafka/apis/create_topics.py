"""CreateTopics: new topics, and, from version 5 on, the partitions, replication factor and configs of each (KIP-525).

The checks are made in the order of Kafka's controller. A name always makes a topic with partitions.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from broker_core.catalog import (
    CatalogError,
    Edit,
    NameCollides,
    TopicExists,
    TopicInvalid,
    TopicWrite,
    creation,
)
from broker_core.kafka import is_legal
from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.names import topic_ids_of_a_request
from broker_core.servers.kafka.large_requests import in_slices
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.row_error import MOST_CHANGES, TOO_LARGE, ChangeRefused, RowError, error_of
from broker_core.servers.kafka.topics.new_topic import TopicToCreate, check_partitions, new_topic
from broker_core.service import AuditRow, TopicEditor
from broker_core.wire.kafka import CREATE_TOPICS, ErrorCode, Fields

__all__ = ["CREATE_TOPICS_ROW", "collision"]

_CLUSTER_METADATA: Final = "__cluster_metadata"
#: The first version whose answers have configs.
_WITH_CONFIGS: Final = 5


async def _rows(call: KafkaCall) -> Sequence[Fields]:
    """The rows of the answer."""
    requested: Sequence[Fields] = call.body["topics"]
    changes, kafka = call.changes(), call.services.options.kafka
    check_partitions(requested, kafka)
    call.changes(len(requested))
    refused = await _not_allowed(call, requested)
    left = [row for row in requested if row["name"] not in refused]
    plans = await in_slices(lambda row: new_topic(row, call.namespace, kafka, call.node.node_id), left)
    planned = {row["name"]: plan for row, plan in zip(left, plans, strict=True)}
    planned |= await _taken(call, changes, planned, everything=call.body["validate_only"])
    if _records(planned) > MOST_CHANGES:
        planned |= await _taken(call, changes, planned, everything=True)
    if _records(planned) > MOST_CHANGES:
        raise ChangeRefused(TOO_LARGE)
    rows = [_refused(name, error) for name, error in refused.items()]
    rows += [_refused(name, each) for name, each in planned.items() if isinstance(each, RowError)]
    rows += await _made(call, changes, [each for each in planned.values() if isinstance(each, TopicToCreate)])
    return rows


def _all_refused(call: KafkaCall, error: RowError) -> Sequence[Fields]:
    return [_refused(row["name"], error) for row in call.body["topics"]]


def _results(call: KafkaCall, rows: Sequence[Fields]) -> Iterator[AuditRow]:
    """The results of the topics."""
    codes = {row["name"]: row["error_code"] for row in rows if "error_code" in row}
    before = call.full_name("")
    for name in dict.fromkeys(row["name"] for row in call.body["topics"]):
        yield row_of(before + name, codes.get(name, 0))


_audited_rows: Final = partial(audited, "create_topic", _rows, _results, _all_refused)


async def _create(call: KafkaCall) -> Fields:
    rows = await _audited_rows(call)
    encode = partial(CREATE_TOPICS.response_elements, "topics", rows, call.version)
    return {"topics": await call.off_loop(len(rows), encode)}


async def _not_allowed(call: KafkaCall, requested: Sequence[Fields]) -> dict[str, RowError]:
    """The names that are not looked at any further."""
    refused: dict[str, RowError] = {}
    authorizer = call.services.authorizer
    everything = authorizer.allows(call, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    for name, count in Counter(row["name"] for row in requested).items():
        if count > 1:
            refused[name] = RowError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif name == _CLUSTER_METADATA:
            text = f"Creation of internal topic {name} is prohibited."
            refused[name] = RowError(ErrorCode.INVALID_REQUEST, text)
        elif not everything and not authorizer.allows(call, Operation.CREATE, ResourceType.TOPIC, name):
            refused[name] = RowError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    # Rules are about topics: a name that no topic can have is answered by itself.
    left = (row["name"] for row in requested if row["name"] not in refused and is_legal(row["name"]))
    return refused | await call.denied(left)


def _records(planned: Mapping[str, TopicToCreate | RowError]) -> int:
    return sum(each.records for each in planned.values() if isinstance(each, TopicToCreate))


async def _taken(
    call: KafkaCall,
    changes: TopicEditor,
    planned: Mapping[str, TopicToCreate | RowError],
    *,
    everything: bool,
) -> dict[str, RowError]:
    """The errors of names that exist, or collide with a topic: among refused names, or among all.

    For topics that are created, the change itself finds it out. A name that no Kafka topic can have keeps that error,
    even if Pulsar clients have created it.
    """
    names = [
        name
        for name, each in planned.items()
        if (
            everything
            if isinstance(each, TopicToCreate)
            else each.code is not ErrorCode.INVALID_TOPIC_EXCEPTION
        )
    ]
    if not names:
        return {}
    assert changes.catalog is not None  # before a cluster this is relayed
    try:
        taken = await asyncio.to_thread(changes.catalog.file.taken_names, call.namespace, names)
    except CatalogError as error:
        return dict.fromkeys(names, error_of(error))
    colliding = {name: other for name, other in taken.items() if name != other}
    return {name: _exists(name) for name in taken} | await _collisions(call, colliding)


async def _collisions(call: KafkaCall, others: Mapping[str, str]) -> dict[str, RowError]:
    """The errors of names, each by the topic that it collides with, which is named if the client may see it."""
    if not others:
        return {}
    topics = await call.services.named.by_name(call, sorted(set(others.values())), operation=None)
    shown = {topic.name for topic in topics if not topic.error}
    return {name: collision(name, other if other in shown else None) for name, other in others.items()}


async def _made(call: KafkaCall, changes: TopicEditor, topics: Sequence[TopicToCreate]) -> Sequence[Fields]:
    """The rows of topics that can be made, once they are."""
    identified = list(zip(topics, topic_ids_of_a_request(len(topics)), strict=True))
    if call.body["validate_only"]:
        return [_success(call, topic, topic_id) for topic, topic_id in identified]
    rows: list[Fields] = []
    edits: list[tuple[TopicToCreate, Edit]] = []
    for topic, topic_id in identified:
        try:
            decide = creation(
                topic.name,
                topic.partitions,
                configs=topic.configs,
                replication=topic.replication,
                topic_id=topic_id,
            )
        except TopicInvalid as error:
            rows.append(_refused(topic.name.local, error_of(error)))
        else:
            edits.append((topic, Edit(topic.name, decide, distinct=True)))
    done = await changes.change(call.attempt, [edit for _, edit in edits], call.change_deadline)
    colliding: dict[str, str] = {}
    for (topic, _), each in zip(edits, done, strict=True):
        name = topic.name.local
        if isinstance(each, TopicWrite):
            assert each.after is not None
            rows.append(_success(call, topic, each.after.topic_id))
        elif isinstance(each, NameCollides):
            colliding[name] = each.other
        else:
            rows.append(_refused(name, _exists(name) if isinstance(each, TopicExists) else error_of(each)))
    rows += [_refused(name, error) for name, error in (await _collisions(call, colliding)).items()]
    return rows


def _success(call: KafkaCall, topic: TopicToCreate, topic_id: uuid.UUID) -> Fields:
    name = topic.name.local
    row: Fields = {"name": name, "topic_id": topic_id}
    if call.version < _WITH_CONFIGS:
        return row
    # The right of DescribeConfigs: not all clients that may create a topic may see the server's configs in it.
    if not (
        call.services.authorizer.allows(call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)
        and call.services.pipeline.authorization.may_list(call.asker, topic.name)
    ):
        row["topic_config_error_code"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return row
    row["num_partitions"] = topic.partitions
    row["replication_factor"] = topic.replicas
    row["configs"] = call.services.configs.created(topic.configs)
    return row


def _exists(name: str) -> RowError:
    return RowError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def collision(name: str, other: str | None) -> RowError:
    """Error of a name that collides with the topic ``other``: ``None`` if the client may not see that topic."""
    which = "an existing topic" if other is None else f"existing topic: {other}"
    return RowError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with {which}")


def _refused(name: str, error: RowError) -> Fields:
    return {"name": name} | error.fields


CREATE_TOPICS_ROW: Final = HandlerRow(CREATE_TOPICS, _create)
