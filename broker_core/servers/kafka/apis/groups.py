"""ListGroups and DescribeGroups: there are no groups of consumers here, since there is nothing to consume."""

from __future__ import annotations

from typing import Final

from broker_core.kafka.acls.bindings import Operation, ResourceType
from broker_core.servers.kafka.call import KafkaCall
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.wire.kafka import DESCRIBE_GROUPS, LIST_GROUPS, ErrorCode, Fields

__all__ = ["DESCRIBE_GROUPS_ROW", "LIST_GROUPS_ROW"]

#: The version from which on a group that is not there is an error, and not a dead group.
_NOT_FOUND: Final = 6


def _list(_call: KafkaCall) -> Fields:
    return {"groups": []}


def _describe(call: KafkaCall) -> Fields:
    return {"groups": [_group(call, group) for group in call.body["groups"]]}


def _group(call: KafkaCall, group: str) -> Fields:
    if not call.services.authorizer.allows(call, Operation.DESCRIBE, ResourceType.GROUP, group):
        return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "group_id": group}
    if call.version < _NOT_FOUND:
        return {"group_id": group, "group_state": "Dead"}
    return {
        "error_code": ErrorCode.GROUP_ID_NOT_FOUND,
        "error_message": f"Group {group} not found.",
        "group_id": group,
        "group_state": "Dead",
    }


LIST_GROUPS_ROW: Final = HandlerRow(LIST_GROUPS, now=_list)
DESCRIBE_GROUPS_ROW: Final = HandlerRow(DESCRIBE_GROUPS, now=_describe)
