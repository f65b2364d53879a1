"""DescribeAcls, CreateAcls and DeleteAcls: the ACLs of the client's namespace.

They are an operator's: rules and gates are asked for the right to change them, also before they are shown, then ACLs
for ``DESCRIBE`` or ``ALTER`` on the cluster. Texts for people are Kafka's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeVar

from broker_core.catalog import AclRow, CatalogError
from broker_core.concurrency import EACH_ACL
from broker_core.kafka.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    binding_fault,
    binding_of,
    binding_text,
    known,
    resource_text,
)
from broker_core.servers.kafka.requests.call import CloseClient, HandlerRow, KafkaCall, audited, row_of
from broker_core.servers.kafka.row_error import (
    MOST_CHANGES,
    TOO_LARGE,
    ChangeRefused,
    RowError,
    error_of,
)
from broker_core.service import AuditRow
from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, ErrorCode, Fields

__all__ = [
    "ACL_ROWS",
    "created_results",
    "deleted_results",
    "filter_of",
    "matched",
    "none_created",
    "none_deleted",
]

_Result = TypeVar("_Result")

#: ACLs that the filters of one request are compared with, all together: some seconds.
_MOST_LOOKS: Final = 3_000_000
_NO_CATALOG: Final = "Before a Pulsar cluster no ACLs are stored."


async def _describe(call: KafkaCall) -> Fields:
    body = call.body
    _check_known(body, "resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    refused = await _refusal(call, Operation.DESCRIBE, "No Authorizer is configured on the broker")
    if refused is not None:
        return refused.fields
    return await _off_loop(1, call, _described, filter_of(body))


def _described(stored: Sequence[AclBinding], requested: AclFilter) -> Fields:
    found = sorted(row for row in stored if requested.matches(row))
    return {
        "error_message": "",
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "pattern_type": pattern,
                "acls": [
                    {
                        "principal": row.principal,
                        "host": row.host,
                        "operation": row.operation,
                        "permission_type": row.permission,
                    }
                    for row in rows
                ],
            }
            for (kind, name, pattern), rows in groupby(found, key=lambda row: row[:3])
        ],
    }


async def _create(call: KafkaCall) -> Fields:
    creations = call.body["creations"]
    for row in creations[: MOST_CHANGES + 1]:
        _check_known(row, "resource_type", "resource_pattern_type", "operation", "permission_type")
    refused = await _refusal(call, Operation.ALTER, "No Authorizer is configured.")
    if refused is not None or len(creations) > MOST_CHANGES:
        raise ChangeRefused(refused or TOO_LARGE)
    bindings = [_binding_of(row) for row in creations]
    faults = [binding_fault(binding) for binding in bindings]
    add = [binding for binding, fault in zip(bindings, faults, strict=True) if fault is None]
    call.attempt.unchanged.update(set(add).intersection(call.services.authorizer.bindings(call)))
    failed = await _changed(call, add=add)
    return {
        "results": [
            (failed or {"error_message": ""})
            if fault is None
            else RowError(ErrorCode.INVALID_REQUEST, fault).fields
            for fault in faults
        ]
    }


async def _delete(call: KafkaCall) -> Fields:
    filters = call.body["filters"]
    for row in filters[: MOST_CHANGES + 1]:
        _check_known(row, "resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    refused = await _refusal(call, Operation.ALTER, "No Authorizer is configured.")
    if refused is not None or len(filters) > MOST_CHANGES:
        raise ChangeRefused(refused or TOO_LARGE)
    results = await _off_loop(len(filters), call, matched, [filter_of(row) for row in filters])
    gone = {row for result in results if isinstance(result, list) for row in result}
    failed = await _changed(call, remove=gone)
    return {
        "filter_results": [
            result
            if not isinstance(result, list)
            else failed or {"matching_acls": [_matching(row) for row in result]}
            for result in results
        ]
    }


def none_created(call: KafkaCall, error: RowError) -> Fields:
    """The answer to CreateAcls that is refused."""
    return {"results": [error.fields] * len(call.body["creations"])}


def none_deleted(call: KafkaCall, error: RowError) -> Fields:
    """The answer to DeleteAcls that is refused."""
    return {"filter_results": [error.fields] * len(call.body["filters"])}


def matched(stored: Sequence[AclBinding], filters: Sequence[AclFilter]) -> list[list[AclBinding] | Fields]:
    """The matches of each filter, or its error; all is bounded, though each filter may match everything."""
    results: list[list[AclBinding] | Fields] = []
    left, looks = MOST_CHANGES, _MOST_LOOKS
    for requested in filters:
        looks -= len(stored)
        if requested.has_unknown:
            results.append(RowError(ErrorCode.INVALID_REQUEST, f"Unknown {requested.has_unknown}.").fields)
            continue
        found = [] if looks < 0 else sorted(row for row in stored if requested.matches(row))
        left -= len(found)
        results.append(TOO_LARGE.fields if looks < 0 or left < 0 else found)
    return results


async def _off_loop(count: int, call: KafkaCall, work: Callable[..., _Result], *arguments: object) -> _Result:
    """The work on the ACLs of the namespace; by the threads of listings if ``count`` passes over them are long."""
    stored = call.services.authorizer.bindings(call)
    duration = count * len(stored) * EACH_ACL
    return await call.services.pipeline.workers.call(call.asker, partial(work, stored, *arguments), duration)


async def _refusal(call: KafkaCall, operation: Operation, off: str) -> RowError | None:
    """The error of a client that may not do this, or if there is no authorizer."""
    authorizer = call.services.authorizer
    if not authorizer.enabled:
        return RowError(ErrorCode.SECURITY_DISABLED, off)
    if not authorizer.allows(call, operation, ResourceType.CLUSTER, CLUSTER_NAME):
        message = f"{call.principal} needs {operation.name} permission on the cluster."
        return RowError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
    return await call.refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "create_acl")


async def _changed(
    call: KafkaCall, add: Iterable[AclBinding] = (), remove: Iterable[AclBinding] = ()
) -> Fields | None:
    """Store a change, and use it; returns the error if that is not possible."""
    catalog = call.services.catalog
    added, removed = [_row(each) for each in add], [_row(each) for each in remove]
    if not added and not removed:
        return None
    if catalog is None:
        return RowError(ErrorCode.POLICY_VIOLATION, _NO_CATALOG).fields
    try:
        await asyncio.to_thread(catalog.file.change_kafka_acls, call.namespace, added, removed)
    except CatalogError as error:
        return error_of(error).fields
    return None


def _check_known(row: Mapping[str, Any], *names: str) -> None:
    """Close the client if a field with one of these names is 0, as Kafka does."""
    if not all(row[name] for name in names):
        raise CloseClient("an ACL or a filter has UNKNOWN elements")


def filter_of(row: Mapping[str, Any]) -> AclFilter:
    """A filter of DescribeAcls or DeleteAcls."""
    return AclFilter(
        known(ResourceType, row["resource_type_filter"]),
        row["resource_name_filter"],
        known(PatternType, row["pattern_type_filter"]),
        row["principal_filter"],
        row["host_filter"],
        known(Operation, row["operation"]),
        known(Permission, row["permission_type"]),
    )


_BINDING: Final = (
    "resource_type",
    "resource_name",
    "resource_pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def _binding_of(row: Mapping[str, Any]) -> AclBinding:
    kind, name, pattern, principal, host, operation, permission = (row[field] for field in _BINDING)
    return binding_of((kind, name, pattern, principal, host, operation, permission))


def _matching(binding: AclBinding) -> Fields:
    kind, name, pattern, principal, host, operation, permission = binding
    return {
        "resource_type": kind,
        "resource_name": name,
        "pattern_type": pattern,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def _row(binding: AclBinding) -> AclRow:
    return AclRow(*binding)


def created_results(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    """The results of the ACLs of CreateAcls."""
    for requested, row in zip(call.body["creations"], fields["results"], strict=True):
        yield _results(call, _binding_of(requested), row.get("error_code", 0))


def deleted_results(call: KafkaCall, fields: Fields) -> Iterator[AuditRow]:
    """A row for each ACL that DeleteAcls deleted, and for each filter that it refused, or that no ACL matched."""
    for row in fields["filter_results"]:
        code, found = row.get("error_code", 0), row.get("matching_acls", ())
        if code or not found:
            yield row_of("", code) if code else AuditRow(outcome="unchanged")
        for each in found:
            yield _results(call, _binding_of(each | {"resource_pattern_type": each["pattern_type"]}), 0)


def _results(call: KafkaCall, binding: AclBinding, code: int) -> AuditRow:
    row = row_of(resource_text(binding), code, {"acl": binding_text(binding)})
    return row._replace(outcome="unchanged") if not code and binding in call.attempt.unchanged else row


ACL_ROWS: Final = (
    HandlerRow(DESCRIBE_ACLS, _describe),
    HandlerRow(CREATE_ACLS, partial(audited, "create_acl", _create, created_results, none_created)),
    HandlerRow(DELETE_ACLS, partial(audited, "delete_acl", _delete, deleted_results, none_deleted)),
)
