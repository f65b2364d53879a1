"""The lookup commands: one row for each, which suffices to answer and to relay it.

A row has what the protocol's messages lack: the action that gates know the command by, and the answers of a broker that
are not passed on. Everything else is read from the messages: where topic, request id and error are, and which fields a
proxy fills in. So a command is added by its row (and its messages in ``pulsar_api.proto``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import Descriptor

from broker_core.counted import counted
from broker_core.errors import ServerError
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandLookupTopicResponse

__all__ = ["LOOKUP_COMMANDS", "MOST_PARTITIONS", "LookupCommand", "set_error"]

#: The number of partitions is unsigned in an answer, but Java and Go read it into a signed int.
MOST_PARTITIONS: Final = 2**31 - 1

#: Fields of a request that proxies fill in. From any other client they would be an unchecked identity.
_CLAIMED_IDENTITY: Final = ("original_principal", "original_auth_data", "original_auth_method")

#: Code and text of an error: the names of their fields differ from answer to answer.
_ERRORS: Final = (("error", "message"), ("error_code", "error_message"))


def _nothing(_body: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class LookupCommand:
    """One lookup command.

    ``action`` is one of :data:`broker_core.access.asker.ACTIONS`. ``fault`` gets the body of a broker's answer, and
    returns why a client must not get it, if so. ``asks_owner``: only the broker that serves the topic answers.
    """

    request: BaseCommand.Type.ValueType
    response: BaseCommand.Type.ValueType
    action: str
    fault: Callable[[Any], str | None] = _nothing
    asks_owner: bool = False

    def request_body(self, command: BaseCommand) -> Any:
        """The request: the body of a command of this type."""
        return getattr(command, _body_name(self.request))

    def response_body(self, answer: BaseCommand) -> Any:
        """The response: the body of an answer of this type."""
        return getattr(answer, _body_name(self.response))

    def without_identity(self, command: BaseCommand) -> BaseCommand:
        """A copy of the command with all of its fields, unknown ones too, but without the claimed identity.

        Absent fields stay absent: field 6 of PARTITIONED_METADATA then means true.
        """
        copy = BaseCommand()
        copy.CopyFrom(command)
        _clear(self.request_body(copy), _CLAIMED_IDENTITY)
        return copy

    def failed(self, request_id: int, code: ServerError, message: str) -> BaseCommand:
        """The answer that refuses the command. Two codes in it close the connection at clients:
        docs/reference/pulsar-behaviour.md#answers-that-close-a-connection
        """
        answer = BaseCommand(type=self.response)
        body = self.response_body(answer)
        body.request_id = request_id
        outcome = body.DESCRIPTOR.fields_by_name.get("response")
        if outcome is not None:
            body.response = outcome.enum_type.values_by_name["Failed"].number
        set_error(body, code, message)
        return answer

    def is_refusal(self, answer: BaseCommand) -> bool:
        """Whether an answer refuses the request."""
        body = self.response_body(answer)
        if body.HasField(_error_fields(body.DESCRIPTOR)[0]):
            return True
        outcome = body.DESCRIPTOR.fields_by_name.get("response")
        return outcome is not None and body.response == outcome.enum_type.values_by_name["Failed"].number

    def error(self, answer: BaseCommand) -> tuple[int, str]:
        """Code and text of an answer that refuses the request; of any other one, the defaults of the fields."""
        body = self.response_body(answer)
        code, text = _error_fields(body.DESCRIPTOR)
        return getattr(body, code), getattr(body, text)

    def denial(self, answer: BaseCommand) -> str | None:
        """The text of an answer that refuses the request for lack of rights; ``None`` for any other one."""
        code, text = self.error(answer)
        return text if code == ServerError.AuthorizationError else None

    def relayable_fault(self, answer: BaseCommand) -> str | None:
        """The reason why a broker's answer is not passed on, if so."""
        body = self.response_body(answer)
        outcome = body.DESCRIPTOR.fields_by_name.get("response")
        if outcome is not None and body.response not in outcome.enum_type.values_by_number:
            return f"they answered with the unknown outcome {body.response}"
        return self.fault(body)

    def make_relayable(
        self,
        answer: BaseCommand,
        request_id: int,
        known: Callable[[int, str], tuple[ServerError, str]],
        without: tuple[str, ...] = (),
    ) -> None:
        """Turn a broker's answer into the answer for the client, without the named fields. ``known`` gives the code
        and the text of an error whose code may be unknown here.
        """
        body = self.response_body(answer)
        body.request_id = request_id
        _clear(body, without)
        code_field, text_field = _error_fields(body.DESCRIPTOR)
        if body.HasField(code_field):
            set_error(body, *known(getattr(body, code_field), getattr(body, text_field)))


def _body_name(kind: int) -> str:
    return BaseCommand.DESCRIPTOR.fields_by_number[kind].name


def _error_fields(body: Descriptor) -> tuple[str, str]:
    """The names of the fields of an answer that hold the code and the text of an error."""
    return next(names for names in _ERRORS if names[0] in body.fields_by_name)


def set_error(body: Any, code: ServerError, text: str) -> None:
    """Put the code and the text of an error into the body of an answer."""
    for name, value in zip(_error_fields(body.DESCRIPTOR), (code, text), strict=True):
        setattr(body, name, value)


def _clear(body: Any, names: tuple[str, ...]) -> None:
    for name in names:
        if name in body.DESCRIPTOR.fields_by_name:
            body.ClearField(name)


def _partitions_fault(body: Any) -> str | None:
    return (
        f"they answered with {counted(body.partitions, 'partition')}"
        if body.partitions > MOST_PARTITIONS
        else None
    )


def _lookup_fault(body: Any) -> str | None:
    if body.response == CommandLookupTopicResponse.Failed or body.HasField("error"):
        return None
    named = body.brokerServiceUrl or body.brokerServiceUrlTls
    return None if named else "they answered without the address of a broker"


#: The lookup commands by their type.
LOOKUP_COMMANDS: Final[Mapping[int, LookupCommand]] = MappingProxyType(
    {
        row.request: row
        for row in (
            LookupCommand(
                BaseCommand.PARTITIONED_METADATA,
                BaseCommand.PARTITIONED_METADATA_RESPONSE,
                action="describe",
                fault=_partitions_fault,
            ),
            LookupCommand(
                BaseCommand.LOOKUP, BaseCommand.LOOKUP_RESPONSE, action="lookup", fault=_lookup_fault
            ),
            LookupCommand(BaseCommand.GET_SCHEMA, BaseCommand.GET_SCHEMA_RESPONSE, action="schema"),
            LookupCommand(
                BaseCommand.GET_OR_CREATE_SCHEMA,
                BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE,
                action="put_schema",
                asks_owner=True,
            ),
        )
    }
)
