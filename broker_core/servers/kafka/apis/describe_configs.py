"""DescribeConfigs: the configs of topics, and of the one broker from which topics inherit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from broker_core.kafka import why_illegal
from broker_core.kafka.acls import Operation
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.config_resource_types import (
    ConfigResourceType,
    is_known,
    not_this_broker,
    unauthorized,
)
from broker_core.servers.kafka.row_error import RowError, error_row
from broker_core.servers.kafka.topics.broker_configs import broker_configs
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import DESCRIBE_CONFIGS, MESSAGES, Encoded, ErrorCode, Fields, Writer

__all__ = ["DESCRIBE_CONFIGS_ROW"]

_WANTS: Final = frozenset({"partitions", "configs"})
#: Rows that are encoded on the event loop.
_FEW: Final = 50
_ROW: Final = DESCRIBE_CONFIGS.response.struct_at("results")
#: The most bytes of an answer, which is in memory as a whole: 50,000 topics without documentation.
_LARGEST: Final = 256 * 1024 * 1024
_DENIED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


async def _describe(call: KafkaCall) -> Fields:
    requested: Sequence[Fields] = call.body["resources"]
    names = await call.off_loop(len(requested), _names, requested)
    if names is None:
        # Kafka fails at such a number, and with it the whole request.
        return {"results": [_row(row, error_row(ErrorCode.INVALID_REQUEST)) for row in requested]}
    found = await call.services.named.by_name(
        call, names, operation=Operation.DESCRIBE_CONFIGS, rules="list", wants=_WANTS
    )
    topics = {topic.name: topic for topic in found}
    if len(requested) <= _FEW:
        return {"results": _encoded(call, requested, topics)}
    # A request of some kilobytes may ask for megabytes: their permits come first.
    expected = _size_of_row(call, requested, topics) * len(requested)
    await call.hold(expected)
    rows = await call.off_loop(len(requested), _encoded, call, requested, topics)
    more = _held_bytes(rows) - expected
    if more > 0:
        await call.hold(more)
    return {"results": replace(rows, pieces=[memoryview(each) for each in rows.pieces])}


def _names(requested: Sequence[Fields]) -> list[str] | None:
    """The topics of the request, each once; ``None`` if a resource is of an unknown kind."""
    if not all(is_known(row["resource_type"]) for row in requested):
        return None
    return list(
        dict.fromkeys(
            row["resource_name"] for row in requested if row["resource_type"] == ConfigResourceType.TOPIC
        )
    )


def _size_of_row(
    call: KafkaCall, requested: Sequence[Fields], topics: Mapping[str | None, NamedTopic]
) -> int:
    """The memory of one more row: one with configs, or an error if there is none."""
    with_configs = (
        row
        for row in requested
        if row["resource_type"] != ConfigResourceType.TOPIC or not topics[row["resource_name"]].error
    )
    row = next(with_configs, requested[0])
    one, two = (_held_bytes(_encoded(call, rows, topics)) for rows in ([row], [row, row]))
    return two - one


def _held_bytes(rows: Encoded) -> int:
    """The memory of rows: many share the encoded configs of topics without their own."""
    return sum(map(len, {id(piece): piece for piece in rows.pieces}.values()))


def _encoded(
    call: KafkaCall, requested: Sequence[Fields], topics: Mapping[str | None, NamedTopic]
) -> Encoded:
    """The rows; as in Kafka, hidden ones come last, except in a page."""
    allowed = Writer()
    denied = Writer() if call.page is None else allowed
    flexible = DESCRIBE_CONFIGS.is_flexible(call.version)
    error = 0
    brokers: dict[tuple[object, ...], Fields] = {}  # a client may ask for the one that there is many times
    for each in requested:
        if each["resource_type"] == ConfigResourceType.TOPIC:
            row = _topic(call, each, topics)
        else:
            same = (each["resource_type"], each["resource_name"], _keys(each))
            row = brokers[same] if same in brokers else brokers.setdefault(same, _other(call, each))
        error = error or row["error_code"]
        writer = denied if row["error_code"] in _DENIED else allowed
        _ROW.write(writer, row, call.version, flexible=flexible)
        if allowed.size > _LARGEST:
            raise CloseClient(f"configs of more than {_LARGEST} bytes are asked for in one request")
    pieces = allowed.pieces() if denied is allowed else [*allowed.pieces(), *denied.pieces()]
    return Encoded(len(requested), pieces, error)


def _topic(call: KafkaCall, requested: Fields, topics: Mapping[str | None, NamedTopic]) -> Fields:
    topic = topics[requested["resource_name"]]
    if topic.error is ErrorCode.INVALID_TOPIC_EXCEPTION:
        return _row(requested, RowError(topic.error, why_illegal(requested["resource_name"])))
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _row(requested, RowError(topic.error, ""))
    if topic.error:
        return _row(requested, RowError(topic.error, topic.message or MESSAGES.get(topic.error)))
    configs = call.services.configs.described(
        call.version,
        topic.configs,
        _keys(requested),
        synonyms=call.body["include_synonyms"],
        documentation=call.body["include_documentation"],
    )
    return _row(requested) | {"configs": configs}


def _other(call: KafkaCall, requested: Fields) -> Fields:
    kind, name = requested["resource_type"], requested["resource_name"]
    denied = unauthorized(call, kind, name, Operation.DESCRIBE_CONFIGS)
    if denied is not None:
        return _row(requested, denied)
    if kind not in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        what = "Group name" if kind == ConfigResourceType.GROUP else "Client metrics subscription name"
        if not name:
            return _row(requested, RowError(ErrorCode.INVALID_REQUEST, f"{what} must not be empty"))
        return _row(requested)
    is_broker = kind == ConfigResourceType.BROKER
    if not name and not is_broker:
        return _row(requested, RowError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty"))
    if name:
        instead_of = " or empty string," if is_broker else ""
        wrong = not_this_broker(name, call.node.node_id, is_called="Broker", instead_of=instead_of)
        if wrong is not None:
            return _row(requested, wrong)
    if not is_broker:
        return _row(requested)
    configs = broker_configs(call.services.options.kafka, of_all_brokers=not name)
    keys = _keys(requested)
    shown = [each for each in configs if keys is None or each["name"] in keys]
    if not call.body["include_synonyms"]:
        shown = [each | {"synonyms": []} for each in shown]
    if not call.body["include_documentation"]:
        shown = [each | {"documentation": None} for each in shown]
    return _row(requested) | {"configs": shown}


def _keys(requested: Fields) -> Collection[str] | None:
    return frozenset(requested["configuration_keys"]) if requested["configuration_keys"] else None


def _row(requested: Fields, error: RowError | None = None) -> Fields:
    return {
        "resource_type": requested["resource_type"],
        "resource_name": requested["resource_name"],
        "error_code": ErrorCode.NONE if error is None else error.code,
        "error_message": "" if error is None else error.message,
    }


DESCRIBE_CONFIGS_ROW: Final = HandlerRow(DESCRIBE_CONFIGS, _describe)
