"""``GET /v1/me``: the asker, its rights and their end, and facts of this server."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from pydantic import Field

from broker_core.access import RULE_ACTIONS
from broker_core.errors import InvalidName
from broker_core.names import MAX_NAMESPACE, NamespaceName
from broker_core.redaction import quoted
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right
from broker_core.servers.http.api.services import ApiServices, takes_changes
from broker_core.servers.http.http_access import CREDENTIALS_END

__all__ = ["operations"]


class _Rights(JsonObject):
    """Actions of the rules: `list`, `lookup`, `monitor`, `admin`."""

    everywhere: list[str] = Field(description="The actions that it may do in all namespaces.")
    somewhere: list[str] = Field(description="The actions that it may do in some namespace.")
    namespace: list[str] | None = Field(
        description="Those that it may do in the namespace of the question; null without one. Plugins may allow fewer."
    )


class _Server(JsonObject):
    version: str
    topics: str = Field(description="What holds the topics: `catalog`, or `upstream`, the brokers behind it.")
    writes: bool = Field(
        description="Whether topics can be changed over HTTP: those of the namespace of the question, if it has one."
    )
    page_changes: bool = Field(description="Whether pages of this server may change topics.")
    questions: bool = Field(description="Whether it shows the frequent questions.")
    property_keys: list[str] = Field(description="The properties that select topics.")


class _Me(JsonObject):
    role: str | None
    original_principal: str | None = Field(description="The role that the proxy of the client asks for.")
    address: str
    client_version: str
    authentication: list[str] = Field(
        description="The methods by which clients authenticate; none if all are let in."
    )
    super: bool = Field(description="Whether it may do everything: a super role, or there are no rules.")
    until: str | None = Field(
        description="When its credentials end, in UTC; null if that is not known, or they do not.",
        json_schema_extra={"format": "date-time"},
    )
    rights: _Rights
    server: _Server


_EXAMPLE: Final = {
    "role": "team-a",
    "original_principal": None,
    "address": "192.0.2.7:53211",
    "client_version": "curl/8.5.0",
    "authentication": ["token"],
    "super": False,
    "until": "2026-11-28T05:00:00.000+00:00",
    "rights": {"everywhere": [], "somewhere": ["list", "admin"], "namespace": ["list"]},
    "server": {
        "version": "1.0.0",
        "topics": "catalog",
        "writes": True,
        "page_changes": False,
        "questions": False,
        "property_keys": ["region"],
    },
}


#: A tenant, and the namespace of one.
_PART: Final = "[-=:.A-Za-z0-9_]+"


def _namespace(text: str) -> NamespaceName:
    try:
        return NamespaceName.parse(text)
    except InvalidName:
        raise ValueError(f"must be tenant/namespace, not {quoted(text)}") from None


def operations(services: ApiServices, version: str) -> list[HttpOperation]:
    """The operation of this module; ``version`` is the server's."""

    async def show(request: ApiRequest) -> web.StreamResponse:
        return _shown(services, request, version).response()

    return [
        HttpOperation(
            "GET",
            "/v1/me",
            "showAsker",
            "The client that asks: its role, its rights by the rules, and the server that is asked.",
            Right.CREDENTIALS,
            show,
            {200: Reply("The client.", {"application/json": _Me}, examples={"application/json": _EXAMPLE})},
            tag="server",
            parameters=(
                Parameter(
                    "namespace",
                    "A namespace, `tenant/namespace`, to say the rights in.",
                    read=_namespace,
                    schema={"type": "string", "pattern": f"^{_PART}/{_PART}$", "maxLength": MAX_NAMESPACE},
                    example="public/default",
                ),
            ),
        )
    ]


def _shown(services: ApiServices, request: ApiRequest, version: str) -> _Me:
    rules, asker, pipeline = services.pipeline.authorization, request.asker, services.pipeline
    namespace: NamespaceName | None = request.values["namespace"]
    ends: float | None = request.http.get(CREDENTIALS_END)
    return _Me(
        role=asker.role,
        original_principal=asker.original_principal,
        address=asker.remote_address,
        client_version=asker.client_version,
        authentication=list(services.methods),
        super=not rules.on or rules.is_super(asker),
        until=None if ends is None else time_text(ends),
        rights=_Rights(
            everywhere=[action for action in RULE_ACTIONS if rules.allows(asker, action, None)],
            somewhere=[action for action in RULE_ACTIONS if rules.allows_somewhere(asker, action)],
            namespace=None
            if namespace is None
            else [action for action in RULE_ACTIONS if rules.allows(asker, action, str(namespace))],
        ),
        server=_Server(
            version=version,
            topics=pipeline.lister.name,
            writes=takes_changes(services, namespace),
            page_changes=services.pages.may_change,
            questions=services.http.questions,
            property_keys=sorted(pipeline.options.selecting_keys),
        ),
    )
