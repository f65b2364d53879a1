"""ListGroups, DescribeGroups and ConsumerGroupDescribe: there are no groups here, since there is nothing to consume."""

from __future__ import annotations

from typing import Final

from broker_core.kafka.acls import Operation, ResourceType
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, of_many
from broker_core.wire.kafka import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS, LIST_GROUPS, ErrorCode, Fields

__all__ = ["GROUP_ROWS"]

#: The version from which on a group that is not there is an error, and not a dead group.
_NOT_FOUND: Final = 6


def _list(_call: KafkaCall) -> Fields:
    return {"groups": []}


@of_many
def _describe(call: KafkaCall) -> Fields:
    return {"groups": [_group(call, group) for group in call.body["groups"]]}


def _group(call: KafkaCall, group: str) -> Fields:
    if not _may_describe(call, group):
        return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "group_id": group}
    if call.version < _NOT_FOUND:
        return {"group_id": group, "group_state": "Dead"}
    return {
        "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
        "error_message": f"Group {group} not found.",
        "group_id": group,
        "group_state": "Dead",
    }


@of_many
def _describe_consumers(call: KafkaCall) -> Fields:
    """Answer ConsumerGroupDescribe; as in Kafka, groups without a name and undescribable ones come first."""
    rows = [_consumer_group(call, group) for group in call.body["group_ids"]]
    if call.page is None:
        rows.sort(key=lambda row: row["error_code"] == ErrorCode.GROUP_ID_NOT_FOUND)
    return {"groups": rows}


def _consumer_group(call: KafkaCall, group: str) -> Fields:
    if not _may_describe(call, group):
        return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "group_id": group}
    if not group:
        return {"error_code": ErrorCode.INVALID_GROUP_ID, "group_id": group}
    return {
        "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
        "error_message": f"Group {group} not found.",
        "group_id": group,
    }


def _may_describe(call: KafkaCall, group: str) -> bool:
    return call.services.authorizer.allows(call, Operation.DESCRIBE, ResourceType.GROUP, group)


GROUP_ROWS: Final = (
    HandlerRow(LIST_GROUPS, _list),
    HandlerRow(DESCRIBE_GROUPS, _describe),
    HandlerRow(CONSUMER_GROUP_DESCRIBE, _describe_consumers),
)
