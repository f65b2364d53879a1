"""A question that a client with the right ``admin`` asks as another client: ``explain`` and ``:why``."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from broker_core.access import Asker, host_of
from broker_core.names import Mode, TopicName
from broker_core.plugin_api import ListingRequest
from broker_core.quantities import ListenAddress
from broker_core.redaction import quoted
from broker_core.servers.http.api.api_request import ApiRequest, RequestObject
from broker_core.servers.http.api.json_object import Text
from broker_core.servers.http.api.operation import Body
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import fields_text

__all__ = ["QuestionAsClient", "body_of", "read_question"]

#: Bytes of a body besides those that its properties may have, each character written as six.
_MOST_PATTERN: Final = 64 * 1024
_LONGEST: Final = 1024
_MEMBERS: Final = ("role", "original_principal", "address", "client_version")
_OR_NULL: Final = {"type": ["string", "null"], "maxLength": _LONGEST}
_BYTE: Final = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_PORT: Final = "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})"
_ADDRESS: Final = {
    "description": "An address with or without a port, an IPv6 address with one in brackets: `[2001:db8::7]:53211`.",
    "anyOf": [
        {"type": ["string", "null"], "maxLength": 0},
        {"type": "string", "pattern": rf"^({_BYTE}\.){{3}}{_BYTE}(:{_PORT})?$"},
        {"type": "string", "format": "ipv6"},
    ],
}


def _mode(value: Any) -> Mode:
    if not isinstance(value, str):
        raise PydanticCustomError("mode", "")
    return Mode.parse(value)


class QuestionAsClient(RequestObject):
    """A question, and the client that it is asked as."""

    prefix = "the body: "
    wrong: ClassVar = {
        "": "must be an object",
        "pattern": "pattern must be a string",
        "mode": "mode must be a string",
        "properties": "properties must be an object whose values are strings",
        "as": "as must be an object whose values are strings or null",
        "names": "names must be a number from 0 to 1000",
    }

    pattern: Text | None = Field(default=None, description="As of `GET .../topics`.")
    mode: Annotated[
        Mode,
        PlainValidator(_mode),
        WithJsonSchema({"type": "string", "enum": [mode.name.lower() for mode in Mode]}),
    ] = Field(
        default=Mode.PERSISTENT,
        description="The domains whose topics are listed.",
        json_schema_extra={"default": "persistent"},
    )
    properties: dict[Text, Text] = Field(default={}, description="The properties of the question.")
    asker: (
        Annotated[
            dict[Text, Text | None],
            WithJsonSchema(
                {
                    "type": ["object", "null"],
                    "properties": {**dict.fromkeys(_MEMBERS, _OR_NULL), "address": _ADDRESS},
                    "additionalProperties": False,
                }
            ),
        ]
        | None
    ) = Field(
        default=None,
        alias="as",
        description="The client to ask as: its role, the principal that it is a proxy for, the address that it comes "
        "from, and the name of its software. The answer is the one that this client would get.",
    )

    @classmethod
    def unknown(cls, names: Sequence[str]) -> str:
        known = sorted(each.alias or name for name, each in cls.model_fields.items())
        return f"unknown member {min(names)!r:.100}; known: {', '.join(known)}"


def body_of(services: ApiServices, model: type[QuestionAsClient], example: object) -> Body:
    """The body of an operation that takes a question of ``model``."""
    limits = services.settings.limits
    most = _MOST_PATTERN + 6 * limits.property_bytes + 8 * limits.properties
    return Body(
        {"application/json": model},
        most,
        "The question, as `GET .../topics` takes it by parameters.",
        examples={"application/json": example},
    )


async def read_question(
    request: ApiRequest, sent: QuestionAsClient, topic: TopicName | None = None
) -> ListingRequest:
    """The question with its pattern compiled, as another asker if it names one; ``topic`` is the topic in question.

    Asking as another client is logged for the audit, and also needs the right to list. Raises the refusal of a
    question.
    """
    asker = request.asker
    if sent.asker is not None:
        asker = _asker(sent.asker)
        request.attempt.action = "explain_as"
        given = {"role": "", **{name: value for name, value in sent.asker.items() if value}}
        request.attempt.target = fields_text(given if topic is None else {**given, "topic": str(topic)})
        await request.authorize("list")
    properties = list(sent.properties.items())
    question, uncompiled = request.question(sent.mode, sent.pattern, properties, asker)
    return (
        question if uncompiled is None else await request.services.pipeline.with_pattern(question, uncompiled)
    )


def _address(text: str) -> str:
    """``ADDRESS:PORT`` of an address with or without a port; the error 400 of anything else."""
    has_port = host_of(text) != text
    try:
        found = ListenAddress.parse(text if has_port else f"[{text.removeprefix('[').removesuffix(']')}]:0")
        ip_address(found.host)
    except ValueError:
        raise refused(
            400,
            f"the body: as.address is no IP address such as 192.0.2.7 or 192.0.2.7:53211: {quoted(text)}",
        ) from None
    return str(found)


def _asker(given: dict[str, str | None]) -> Asker:
    for name, value in given.items():
        if name not in _MEMBERS:
            raise refused(400, f"the body: as has {', '.join(_MEMBERS)}, and no {name!r:.100}")
        if value is not None and len(value) > _LONGEST:
            raise refused(400, f"the body: as.{name} has more than {_LONGEST} characters")
    return Asker(
        role=given.get("role") or None,
        original_principal=given.get("original_principal") or None,
        remote_address=_address(given.get("address") or "127.0.0.1"),
        client_version=given.get("client_version") or "",
    )
