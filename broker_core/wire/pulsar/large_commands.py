"""Decoding of large commands, only if it takes no longer than their size suggests.

A command of 5 MB can hold a million properties, and the library makes a message of each: a quarter of a second and
100 MB for one frame, with the interpreter locked. Real commands are small, so a large one is first decoded by an
outline of the protocol in which repeated parts stay undecoded bytes, and the fields of other commands are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from broker_core.errors import BrokerCoreError
from broker_core.wire.pulsar.commands import command_name, decode
from broker_core.wire.pulsar.frames import FrameError
from broker_core.wire.pulsar.lookup_commands import LOOKUP_COMMANDS
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

__all__ = ["LARGE", "TooManyElements", "decode_large"]

#: Bytes of a command up to which it is simply decoded.
LARGE: Final = 64 * 1024

_FILE: Final = "outline.proto"
_PACKAGE: Final = "outline"
_REQUEST_ID: Final = "request_id"
#: Commands whose repeated fields a lookup service reads.
_READ: Final = frozenset(
    {
        BaseCommand.DESCRIPTOR.fields_by_number[kind].name
        for kind in (BaseCommand.GET_TOPICS_OF_NAMESPACE, *LOOKUP_COMMANDS)
    }
)

_Proto = FieldDescriptorProto


class TooManyElements(BrokerCoreError):
    """A command repeats a field too often. ``command`` has its type and its request id, nothing else."""

    def __init__(self, command: BaseCommand, elements: int, limit: int) -> None:
        super().__init__(
            f"{elements} elements in one {command_name(command.type)} command, at most {limit} are decoded"
        )
        self.command = command


def decode_large(command: bytes, max_elements: int) -> BaseCommand:
    """The result of :func:`~broker_core.wire.pulsar.commands.decode`, for commands of any content.

    Commands that repeat fields which only brokers or clients read come with only their type and request id. Raises
    :exc:`~broker_core.wire.pulsar.frames.FrameError` likewise, and :exc:`TooManyElements`.
    """
    try:
        top = _outline("Top").FromString(command)
        body = BaseCommand.DESCRIPTOR.fields_by_number.get(top.type) if top.HasField("type") else None
        if body is None or body.name not in _repeating():
            # Nothing of this type repeats, and fields of other types are left out.
            return decode(_only(top, body))
        encoded: bytes = getattr(top, body.name)
        outline = _outline(body.name).FromString(encoded)
    except DecodeError as unparsable:
        raise FrameError(f"unparsable command of {len(command)} bytes: {unparsable}") from None
    is_read = body.name in _READ
    elements = sum(len(getattr(outline, name)) for name in _repeating()[body.name]) if is_read else 0
    if is_read and elements <= max_elements:
        return decode(_only(top, body))
    bare = BaseCommand(type=top.type)
    part: Any = getattr(bare, body.name)
    part.SetInParent()
    if _REQUEST_ID in part.DESCRIPTOR.fields_by_name and outline.HasField(_REQUEST_ID):
        part.request_id = outline.request_id
    if not is_read:
        return bare
    raise TooManyElements(bare, elements, max_elements)


def _only(top: Any, body: FieldDescriptor | None) -> bytes:
    """The encoded command with only the body of its own type."""
    bare = _outline("Top")()
    if top.HasField("type"):
        bare.type = top.type
    if body is not None and top.HasField(body.name):
        setattr(bare, body.name, getattr(top, body.name))
    encoded: bytes = bare.SerializeToString()
    return encoded


@cache
def _repeating() -> Mapping[str, tuple[str, ...]]:
    """The repeated fields of each command that has any, by the name of its field."""
    found: dict[str, tuple[str, ...]] = {}
    for field in BaseCommand.DESCRIPTOR.fields:
        if field.message_type is not None:
            names = tuple(each.name for each in field.message_type.fields if each.is_repeated)
            if names:
                found[field.name] = names
    return found


@cache
def _outline(name: str) -> Any:
    """The outline of the whole command (``Top``), or of one that repeats fields."""
    return GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> DescriptorPool:
    file = FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto2")
    top = DescriptorProto(name="Top")
    for field in BaseCommand.DESCRIPTOR.fields:
        kind = _Proto.TYPE_INT32 if field.message_type is None else _Proto.TYPE_BYTES
        top.field.add(name=field.name, number=field.number, type=kind, label=_Proto.LABEL_OPTIONAL)
    file.message_type.append(top)
    for name, repeated in _repeating().items():
        message = BaseCommand.DESCRIPTOR.fields_by_name[name].message_type
        assert message is not None
        fields = message.fields_by_name
        outline = DescriptorProto(name=name)
        if _REQUEST_ID in fields:
            outline.field.add(
                name=_REQUEST_ID,
                number=fields[_REQUEST_ID].number,
                type=_Proto.TYPE_UINT64,
                label=_Proto.LABEL_OPTIONAL,
            )
        for each in repeated if name in _READ else ():
            outline.field.add(
                name=each, number=fields[each].number, type=_Proto.TYPE_BYTES, label=_Proto.LABEL_REPEATED
            )
        file.message_type.append(outline)
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool
