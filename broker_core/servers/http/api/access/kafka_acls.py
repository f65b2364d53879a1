"""Kafka's access control lists of a namespace: listing, adding and removing them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Literal

from aiohttp import web
from pydantic import ConfigDict, Field

from broker_core.catalog import AclRow
from broker_core.compact_json import ascii_json
from broker_core.kafka.acls import (
    AclBinding,
    AclFilter,
    PatternType,
    Permission,
    ResourceType,
    binding_of,
    binding_text,
    mistake_in,
    resource_text,
)
from broker_core.kafka.acls import Operation as AclOperation
from broker_core.redaction import shown
from broker_core.servers.http.api.access.super_operation import (
    PAGE,
    REFUSALS,
    ItemPage,
    catalog_of,
    super_operation,
)
from broker_core.servers.http.api.api_request import ApiRequest, RequestObject
from broker_core.servers.http.api.json_object import JsonObject, Text
from broker_core.servers.http.api.operation import Body, HttpOperation, Parameter, Reply
from broker_core.servers.http.api.parameters import MOST_ITEMS, one_of
from broker_core.servers.http.api.problem_details import refused
from broker_core.service import AuditRow

__all__ = ["operations"]

_ACLS: Final = "/v1/access/kafka/acls/{tenant}/{namespace}"
_JSON: Final = "application/json"
#: Bytes of a body with ten thousand ACLs.
_BYTES: Final = 8 * 1024**2
_WORDS: Final[Mapping[str, type[IntEnum]]] = {
    "resource_type": ResourceType,
    "pattern": PatternType,
    "operation": AclOperation,
    "permission": Permission,
}


class _Acl(JsonObject):
    """One binding; the words are Kafka's."""

    model_config = ConfigDict(extra="forbid")

    resource_type: Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
    name: Text
    pattern: Literal["LITERAL", "PREFIXED"] = "LITERAL"
    principal: Text = Field(description="User:NAME, or User:* for all.")
    host: Text = Field(default="*", description="An address, or * for all.")
    operation: Literal[
        "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
    ]  # fmt: skip
    permission: Literal["ALLOW", "DENY"]

    @classmethod
    def of(cls, binding: AclBinding) -> _Acl:
        """A binding as it is shown."""
        values = binding._asdict().items()
        shown: dict[str, Any] = {
            name: value.name if isinstance(value, IntEnum) else value for name, value in values
        }
        return cls.model_construct(**shown)

    def binding(self) -> AclBinding:
        """The binding that it describes."""
        return AclBinding(
            ResourceType[self.resource_type],
            self.name,
            PatternType[self.pattern],
            self.principal,
            self.host,
            AclOperation[self.operation],
            Permission[self.permission],
        )


class _NewAcls(RequestObject):
    wrong = {  # noqa: RUF012 - not a field
        "": 'the body must be an object such as {"items": [...]}',
        "items": "items must be a list of ACLs, each with resource_type, name, principal, operation and permission",
    }

    items: list[_Acl] = Field(min_length=1, max_length=MOST_ITEMS)

    @classmethod
    def unknown(cls, names: Sequence[str]) -> str:
        if names[0] in cls.model_fields:
            return f"an ACL has a member that is not known; known: {', '.join(_Acl.model_fields)}"
        return super().unknown(names)


class _Acls(JsonObject):
    items: list[_Acl]


class _AclPage(_Acls):
    next: str | None = Field(description="The cursor of the next page; null after the last one.")


_AN_ACL: Final = {
    "resource_type": "TOPIC",
    "name": "orders-",
    "pattern": "PREFIXED",
    "principal": "User:orders-app",
    "host": "*",
    "operation": "DESCRIBE",
    "permission": "ALLOW",
}


def _filter_word(name: str) -> Parameter:
    words = [each.name for each in _WORDS[name] if each > 1]
    return Parameter(
        name, "Only ACLs with this one.", read=one_of(words), schema={"type": "string", "enum": words}
    )


_FILTER: Final = (
    _filter_word("resource_type"),
    Parameter("name", "The name of the resource.", example="orders-"),
    Parameter(
        "pattern",
        "How the name is meant; `MATCH`: all that are about a resource of this name.",
        read=one_of(("LITERAL", "PREFIXED", "MATCH")),
        schema={"type": "string", "enum": ["LITERAL", "PREFIXED", "MATCH"]},
    ),
    Parameter("principal", "Only ACLs of this principal, such as User:orders-app."),
    Parameter("host", "Only ACLs with this host."),
    _filter_word("operation"),
    _filter_word("permission"),
)


def operations() -> list[HttpOperation]:
    """The operations of this module."""
    acls = {_JSON: _Acls}
    return [
        super_operation(
            "GET",
            _ACLS,
            "listKafkaAcls",
            "The access control lists of a namespace.",
            _list_acls,
            {
                200: Reply(
                    "A page of the ACLs that match all parameters.",
                    {_JSON: _AclPage},
                    {"Link": "The address of the next page, if there is one."},
                    {_JSON: {"items": [_AN_ACL], "next": None}},
                ),
                **REFUSALS,
            },
            parameters=(*_FILTER, *PAGE),
        ),
        super_operation(
            "POST",
            _ACLS,
            "createKafkaAcls",
            "Add access control lists to a namespace.",
            _create_acls,
            {200: Reply("The ACLs are stored.", acls, examples={_JSON: {"items": [_AN_ACL]}}), **REFUSALS},
            "All are stored, or none. With the first one of any namespace, Kafka clients may do what an ACL or "
            "`kafka.super_users` allows them, and nothing else.",
            body=Body({_JSON: _NewAcls}, _BYTES, "The ACLs.", examples={_JSON: {"items": [_AN_ACL]}}),
            changes="create_acl",
        ),
        super_operation(
            "DELETE",
            _ACLS,
            "deleteKafkaAcls",
            "Remove access control lists of a namespace.",
            _delete_acls,
            {
                200: Reply("The removed ACLs.", acls, examples={_JSON: {"items": [_AN_ACL]}}),
                **REFUSALS,
            },
            "The ACLs that match all parameters are removed; one parameter is needed at least.",
            parameters=_FILTER,
            changes="delete_acl",
        ),
    ]


async def _list_acls(request: ApiRequest) -> web.StreamResponse:
    catalog, wanted = catalog_of(request), _filter(request)
    _, rows = await asyncio.to_thread(catalog.file.kafka_acls, request.namespace())
    return await asyncio.to_thread(_acl_page, request, rows, wanted)


async def _create_acls(request: ApiRequest) -> web.StreamResponse:
    catalog, namespace = catalog_of(request), request.namespace()
    bindings = [each.binding() for each in _NewAcls.read(await request.json()).items]
    for number, each in enumerate(bindings):
        fault = mistake_in(each)
        if fault is not None:
            raise refused(400, f"items[{number}]: {fault}")
    stored = set(map(binding_of, (await asyncio.to_thread(catalog.file.kafka_acls, namespace))[1]))
    await asyncio.to_thread(catalog.file.change_kafka_acls, namespace, add=map(_row, bindings))
    _note(request, [each for each in dict.fromkeys(bindings) if each not in stored])
    return _Acls(items=[_Acl.of(each) for each in bindings]).response()


async def _delete_acls(request: ApiRequest) -> web.StreamResponse:
    catalog, namespace = catalog_of(request), request.namespace()
    wanted = _filter(request)
    if wanted == AclFilter():
        raise refused(400, "say which ACLs: one parameter is needed at least")
    _, rows = await asyncio.to_thread(catalog.file.kafka_acls, namespace)
    found = await asyncio.to_thread(_matching, rows, wanted)
    if len(found) > MOST_ITEMS:
        raise refused(400, f"{len(found)} ACLs are meant: {MOST_ITEMS} are removed at once at the most")
    await asyncio.to_thread(catalog.file.change_kafka_acls, namespace, remove=map(_row, found))
    _note(request, found)
    return _Acls(items=[_Acl.of(each) for each in found]).response()


def _note(request: ApiRequest, changed: Sequence[AclBinding]) -> None:
    """Note for the audit log which ACLs were changed."""
    request.attempt.rows = [
        AuditRow(shown(resource_text(each)), fields={"acl": shown(binding_text(each))}) for each in changed
    ]
    if not changed:
        request.attempt.unchanged.add("")


def _filter(request: ApiRequest) -> AclFilter:
    values = request.values
    given: dict[str, Any] = {
        name: _WORDS[name][values[name]] if name in _WORDS else values[name]
        for name in ("resource_type", "name", "pattern", "principal", "host", "operation", "permission")
        if values[name] is not None
    }
    return AclFilter(**given)


def _matching(rows: Sequence[AclRow], wanted: AclFilter) -> list[AclBinding]:
    return sorted(each for each in map(binding_of, rows) if wanted.matches(each))


def _acl_page(request: ApiRequest, rows: Sequence[AclRow], wanted: AclFilter) -> web.Response:
    """The response with a page; in a thread, as the objects of the longest page take a tenth of a second."""
    page = ItemPage(request, {ascii_json(each): each for each in _matching(rows, wanted)})
    items = [_Acl.of(each) for each in page.items]
    return _AclPage(items=items, next=page.next).response(headers=page.headers)


def _row(binding: AclBinding) -> AclRow:
    return AclRow(*binding)
