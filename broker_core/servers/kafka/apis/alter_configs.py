"""AlterConfigs, which replaces all configs of a topic, and IncrementalAlterConfigs, which changes some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from broker_core.catalog import Edit, TopicWrite, adjustment
from broker_core.concurrency import loop_turn
from broker_core.kafka import why_illegal
from broker_core.kafka.acls import Operation
from broker_core.kafka.configs import (
    ConfigChange,
    ConfigOperation,
    InvalidConfig,
    altered,
    check_configs,
    fault_of_given,
)
from broker_core.servers.kafka.large_requests import SLICE, in_slices
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.requests.config_resource_types import (
    ConfigResourceType,
    is_known,
    not_this_broker,
    unauthorized,
)
from broker_core.servers.kafka.row_error import (
    MOST_CHANGES,
    READ_ONLY,
    TOO_LARGE,
    ChangeRefused,
    RowError,
    error_of,
    error_row,
)
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.service import AuditRow, right_to
from broker_core.wire.kafka import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS, MESSAGES, ErrorCode, Fields

__all__ = ["ALTER_CONFIGS_ROW", "INCREMENTAL_ALTER_CONFIGS_ROW"]

#: From the present configs of a topic to the new ones. Raises ``InvalidConfig``.
_ChangeOfConfigs: TypeAlias = Callable[[Mapping[str, str]], Mapping[str, str]]
_MISSING: Final = frozenset(
    {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
)


async def _alter(call: KafkaCall) -> Fields:
    requested: Sequence[Fields] = call.body["resources"]
    if len(requested) > MOST_CHANGES:
        raise ChangeRefused(TOO_LARGE)
    counts = Counter((row["resource_type"], row["resource_name"]) for row in requested)
    errors = await in_slices(
        lambda row: (
            RowError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if counts[row["resource_type"], row["resource_name"]] > 1
            else _wrong(call, row)
        ),
        requested,
    )
    topics = {
        row["resource_name"]: row for row, error in zip(requested, errors, strict=True) if error is None
    }
    errors_of = await _topics(call, topics)
    return {
        "responses": [
            _row(row, error or errors_of[row["resource_name"]])
            for row, error in zip(requested, errors, strict=True)
        ]
    }


def _all_refused(call: KafkaCall, error: RowError) -> Fields:
    return {"responses": [_row(row, error) for row in call.body["resources"]]}


def _wrong(call: KafkaCall, row: Fields) -> RowError | None:
    """The error of a resource before its topic is looked for; nothing but topics can be changed."""
    names = [each["name"] for each in row["configs"]]
    if len(set(names)) < len(names):
        return RowError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        each["name"]
        for each in row["configs"]
        if each["value"] is None and each.get("config_operation") != ConfigOperation.DELETE
    ]
    if nulls:
        return RowError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    kind, name = row["resource_type"], row["resource_name"]
    if kind == ConfigResourceType.TOPIC:
        return None
    if not is_known(kind):
        return RowError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == ConfigResourceType.BROKER and name:
        wrong = not_this_broker(name, call.node.node_id, is_called="Node", instead_of=",")
        if wrong is not None:
            return wrong
    return unauthorized(call, kind, name, Operation.ALTER_CONFIGS) or RowError(
        ErrorCode.POLICY_VIOLATION, "Only the configs of topics can be changed; others are in the settings."
    )


async def _topics(call: KafkaCall, rows: Mapping[str, Fields]) -> Mapping[str, RowError | None]:
    """The error of each topic, or ``None``."""
    changes = call.services.changes
    if changes is None:
        return dict.fromkeys(rows, READ_ONLY)
    named = await call.services.named.by_name(
        call, list(rows), operation=Operation.ALTER_CONFIGS, action=right_to("alter_configs")
    )
    topics = {topic.name: topic for topic in named if topic.name is not None}
    errors_of: dict[str, RowError | None] = {
        name: RowError(topic.error, topic.message or MESSAGES.get(topic.error))
        for name, topic in topics.items()
        if topic.error not in _MISSING
    }
    if any(not _has_operations(rows[name]) for name in rows if name not in errors_of):
        # Kafka's controller fails at such a number, and with it the whole request.
        errors_of |= {
            name: RowError(ErrorCode.UNKNOWN_SERVER_ERROR, None) for name in rows if name not in errors_of
        }
    broker = call.services.options.kafka.configs
    edits: list[tuple[str, Edit]] = []
    turn = loop_turn()
    for number, (name, row) in enumerate(rows.items()):
        if not number % SLICE:
            await turn.time()
        if name in errors_of:
            continue
        change = _change(call, row)
        why = partial(_why, change, broker, partial(call.may_list, name))
        errors_of[name] = _refusal(topics[name], name, change, broker, why)
        if errors_of[name] is None:
            topic = call.topic(name)
            edits.append(
                (name, Edit(topic, adjustment(topic, configs=_within_transaction(change, broker, why))))
            )
    if not call.body["validate_only"]:
        call.attempt.allowed(edit.topic for _, edit in edits)
        done = await changes.change(call.attempt, [edit for _, edit in edits], call.change_deadline)
        for (name, _), each in zip(edits, done, strict=True):
            if not isinstance(each, TopicWrite):
                errors_of[name] = _missing(name, error_of(each))
    return errors_of


def _why(
    change: _ChangeOfConfigs, broker: Mapping[str, str], may_list: Callable[[], bool], error: InvalidConfig
) -> RowError:
    """The reason why a change of configs is impossible; it names present configs only to clients that may list the
    topic.
    """
    text = str(error) if may_list() else fault_of_given(partial(change, {}), broker)
    return RowError(ErrorCode.INVALID_CONFIG, text)


def _refusal(
    topic: NamedTopic,
    name: str,
    change: _ChangeOfConfigs,
    broker: Mapping[str, str],
    why: Callable[[InvalidConfig], RowError],
) -> RowError | None:
    """The error of a change, in Kafka's order: a missing topic comes last."""
    own = {} if topic.record is None else topic.record.configs
    try:
        after = change(own)
        illegal = why_illegal(name)
        if not name:
            return RowError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if illegal is not None:
            return RowError(ErrorCode.INVALID_TOPIC_EXCEPTION, illegal)
        check_configs(after, broker)
    except InvalidConfig as error:
        return why(error)
    if topic.error:
        return _missing(name, error_row(topic.error))
    return None


def _has_operations(row: Fields) -> bool:
    return all(each.get("config_operation", 0) in list(ConfigOperation) for each in row["configs"])


def _change(call: KafkaCall, row: Fields) -> _ChangeOfConfigs:
    """The change of a topic's configs in a row of either API."""
    broker, given = call.services.options.kafka.configs, row["configs"]
    if call.header.api_key == ALTER_CONFIGS.key:
        replacement = {each["name"]: each["value"] for each in given}
        return lambda _own: replacement
    changes = [
        ConfigChange(each["name"], ConfigOperation(each["config_operation"]), each["value"]) for each in given
    ]
    return lambda own: altered(own, changes, broker)


def _within_transaction(
    change: _ChangeOfConfigs, broker: Mapping[str, str], why: Callable[[InvalidConfig], RowError]
) -> _ChangeOfConfigs:
    """The change of the configs that a topic has when it is written, checked once more."""

    def checked(own: Mapping[str, str]) -> Mapping[str, str]:
        try:
            after = change(own)
            check_configs(after, broker)
        except InvalidConfig as error:
            raise ChangeRefused(why(error)) from None
        return after

    return checked


def _missing(name: str, error: RowError) -> RowError:
    if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return RowError(error.code, f"The topic '{name}' does not exist.")
    return error


def _row(requested: Fields, error: RowError | None) -> Fields:
    row = {"resource_type": requested["resource_type"], "resource_name": requested["resource_name"]}
    return row if error is None else row | error.fields


def _results(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    """The results of the resources, with the numbers of given configs."""
    for requested, row in zip(call.body["resources"], fields["responses"], strict=True):
        kind, name = requested["resource_type"], requested["resource_name"]
        named = next((each.name for each in ConfigResourceType if each == kind), str(kind))
        target = call.full_name(name) if kind == ConfigResourceType.TOPIC else f"{named}:{name}"
        yield row_of(target, row.get("error_code", 0), {"configs": len(requested["configs"])})


_AUDITED: Final = partial(audited, "alter_configs", _alter, _results, _all_refused)
ALTER_CONFIGS_ROW: Final = HandlerRow(ALTER_CONFIGS, _AUDITED)
INCREMENTAL_ALTER_CONFIGS_ROW: Final = HandlerRow(INCREMENTAL_ALTER_CONFIGS, _AUDITED)
