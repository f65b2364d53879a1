"""Describing, adding and removing ACLs (DescribeAcls, CreateAcls, DeleteAcls)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from broker_core.client.client_errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.argument_checks import all_of
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows, row_error
from broker_core.client.kafka.calls.nodes import any_node
from broker_core.client.kafka.pages import Page, Pager
from broker_core.client.kafka.results import Results
from broker_core.counted import counted
from broker_core.kafka.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    known,
)
from broker_core.wire.kafka import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, Fields

__all__ = ["acl_pages", "create_acls", "delete_acls"]


async def acl_pages(pager: Pager, wanted: AclFilter) -> AsyncIterator[Page[AclBinding]]:
    """The bindings that match; all bindings of one resource are on one page."""
    async for value, paged_by in pager.answers(DESCRIBE_ACLS, _filter_fields(wanted), any_node):
        found = (_binding_of(resource, acl) for resource in value["resources"] for acl in resource["acls"])
        yield Page(found, paged_by)


async def create_acls(attempts: Attempts, bindings: Iterable[AclBinding]) -> Results[AclBinding, None]:
    """Add each binding by itself; one that exists already is no error."""

    def request(some: list[AclBinding]) -> Fields:
        return {"creations": [_fields_of(each) for each in some]}

    def read(answer: Fields, some: list[AclBinding]) -> dict[AclBinding, ClientError | None]:
        rows = _fitting(answer["results"], some)
        return {each: row_error(row) for each, row in zip(some, rows, strict=True)}

    wanted = dict.fromkeys(all_of(AclBinding, bindings, "bindings"))
    return Results(await answered_rows(attempts, wanted, any_node, CREATE_ACLS, request, read))


async def delete_acls(
    attempts: Attempts, filters: Iterable[AclFilter]
) -> Results[AclFilter, Results[AclBinding, None]]:
    """Remove the matching bindings; returns them by filter: each is removed, or has an error of its own."""

    def request(some: list[AclFilter]) -> Fields:
        return {"filters": [_filter_fields(each) for each in some]}

    def read(
        answer: Fields, some: list[AclFilter]
    ) -> dict[AclFilter, Results[AclBinding, None] | ClientError]:
        rows = _fitting(answer["filter_results"], some)
        return {each: row_error(row) or _deleted(row) for each, row in zip(some, rows, strict=True)}

    wanted = dict.fromkeys(all_of(AclFilter, filters, "filters"))
    return Results(await answered_rows(attempts, wanted, any_node, DELETE_ACLS, request, read))


def _deleted(row: dict[str, Any]) -> Results[AclBinding, None]:
    return Results({_binding_of(each, each): row_error(each) for each in row["matching_acls"]})


def _fitting(rows: list[dict[str, Any]], wanted: list[Any]) -> list[dict[str, Any]]:
    """The rows of an answer, checked by number: they have the order of the request, and no keys."""
    if len(rows) != len(wanted):
        raise UnexpectedAnswer(f"asked for {counted(len(wanted), 'row')}, and got {len(rows)}")
    return rows


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """The filter in a request of DescribeAcls or DeleteAcls."""
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _binding_of(resource: dict[str, Any], acl: dict[str, Any]) -> AclBinding:
    """The binding in an answer; a number without a name here is ``UNKNOWN``."""
    return AclBinding(
        known(ResourceType, resource["resource_type"]),
        resource["resource_name"],
        known(PatternType, resource["pattern_type"]),
        acl["principal"],
        acl["host"],
        known(Operation, acl["operation"]),
        known(Permission, acl["permission_type"]),
    )


def _fields_of(binding: AclBinding) -> dict[str, Any]:
    """The binding in a request of CreateAcls."""
    return {
        "resource_type": binding.resource_type,
        "resource_name": binding.name,
        "resource_pattern_type": binding.pattern,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission_type": binding.permission,
    }
