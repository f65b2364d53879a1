"""CreateAcls and DeleteAcls before a cluster whose topics may be hidden: they change only what DescribeAcls shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from broker_core.kafka.acls import (
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    known,
)
from broker_core.servers.kafka.apis.acls import filter_of, matched, none_deleted
from broker_core.servers.kafka.gateway.hidden_topics import hidden_resources, hold_decoded
from broker_core.servers.kafka.gateway.relay import by_controller
from broker_core.servers.kafka.requests.call import AnswerLater, KafkaCall
from broker_core.servers.kafka.row_error import MOST_CHANGES, TOO_LARGE, RowError, error_row
from broker_core.upstream.kafka import ANY
from broker_core.wire.kafka import DESCRIBE_ACLS, ErrorCode, Fields

__all__ = ["create_shown", "delete_shown"]

_OF_TOPICS: Final = frozenset({ResourceType.ANY, ResourceType.TOPIC})
#: The patterns of filters that may match an ACL on a topic by its name.
_BY_NAME: Final = frozenset({PatternType.ANY, PatternType.MATCH, PatternType.LITERAL})
_EVERY: Final[Fields] = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


async def create_shown(relay: AnswerLater, call: KafkaCall) -> Fields:
    """A handler of CreateAcls. An ACL on a hidden topic, by its name, would be in no answer, and no filter would delete
    it: it is refused, with masks as one on a missing topic is.
    """
    creations: Sequence[Fields] = call.body["creations"]
    if not call.may_hide_topics:
        return await relay(call)
    named = [{**row, "pattern_type": row["resource_pattern_type"]} for row in creations]
    is_hidden = await hidden_resources(call, named, "create_acl")
    gone = [is_hidden(row) for row in named]
    left = [row for row, is_gone in zip(creations, gone, strict=True) if not is_gone]
    refused = error_row(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION).fields
    if not left:
        return {"results": [refused] * len(creations)}
    found = await relay(replace(call, body={**call.body, "creations": left}))
    results = iter(found["results"])
    return found | {"results": [refused if is_gone else next(results, refused) for is_gone in gone]}


async def delete_shown(relay: AnswerLater, call: KafkaCall) -> Fields:
    """A handler of DeleteAcls. A filter that may match the ACLs of a hidden topic becomes filters of the shown
    resources, each by its name: ACLs that come meanwhile are not deleted.
    """
    filters: Sequence[Fields] = call.body["filters"]
    if not call.may_hide_topics:
        return await relay(call)
    named = [
        {"resource_type": ResourceType.TOPIC, "resource_name": row["resource_name_filter"] or ""}
        for row in filters
    ]
    is_hidden = await hidden_resources(call, named, "delete_acl")
    wide = [
        _may_be_of_topics(row) and (row["resource_name_filter"] is None or is_hidden(topic))
        for row, topic in zip(filters, named, strict=True)
    ]
    if not any(wide):
        return await relay(call)
    described = await by_controller(
        replace(call, body=_EVERY), DESCRIBE_ACLS, lambda _, error: error.fields, target=ANY, again=True
    )
    if described["error_code"]:
        return none_deleted(call, RowError(ErrorCode(described["error_code"]), described["error_message"]))
    await hold_decoded(call, described)
    resources = list(described["resources"])
    is_hidden = await hidden_resources(call, resources, "delete_acl")
    shown = [_resource(row) for row in resources if not is_hidden(row)]
    wanted = [row for row, is_wide in zip(filters, wide, strict=True) if is_wide]
    parts = iter(await call.off_loop(len(wanted) * len(shown), _narrowed, shown, wanted))
    narrow = [next(parts) if is_wide else [row] for row, is_wide in zip(filters, wide, strict=True)]
    some = [row for each in narrow if isinstance(each, list) for row in each]
    if len(some) > MOST_CHANGES:
        return none_deleted(call, TOO_LARGE)
    results: list[Fields] = []
    if some:
        results = (await relay(replace(call, body={**call.body, "filters": some})))["filter_results"]
    left = iter(results)
    return {
        "filter_results": [
            _joined(list(islice(left, len(each)))) if isinstance(each, list) else each for each in narrow
        ]
    }


def _may_be_of_topics(row: Fields) -> bool:
    return row["resource_type_filter"] in _OF_TOPICS and row["pattern_type_filter"] in _BY_NAME


def _resource(row: Fields) -> AclBinding:
    """A resource as a binding for comparison with filters, whatever is allowed there."""
    return AclBinding(
        known(ResourceType, row["resource_type"]),
        row["resource_name"],
        known(PatternType, row["pattern_type"]),
        "",
        "",
        Operation.ANY,
        Permission.ANY,
    )


def _narrowed(shown: Sequence[AclBinding], filters: Sequence[Fields]) -> list[list[Fields] | Fields]:
    """For each filter, the filters that replace it, one per matching resource, or its error."""
    found = matched(shown, [filter_of({**_EVERY, **_of_resource(row)}) for row in filters])
    return [
        each
        if not isinstance(each, list)
        else [
            {
                **row,
                "resource_type_filter": resource.resource_type,
                "resource_name_filter": resource.name,
                "pattern_type_filter": resource.pattern,
            }
            for resource in each
        ]
        for row, each in zip(filters, found, strict=True)
    ]


def _of_resource(row: Fields) -> Fields:
    return {
        name: row[name] for name in ("resource_type_filter", "resource_name_filter", "pattern_type_filter")
    }


def _joined(results: Sequence[Fields]) -> Fields:
    """The results of the filters that stand for one, or their first error."""
    failed = next((row for row in results if row["error_code"]), {"error_code": 0, "error_message": None})
    rows = [row for each in results for row in each.get("matching_acls", ())]
    return {
        "error_code": failed["error_code"],
        "error_message": failed["error_message"],
        "matching_acls": rows,
    }
