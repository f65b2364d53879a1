"""Random commands of Pulsar's binary protocol."""

from __future__ import annotations

from typing import Final

from broker_core.wire.pulsar import BaseCommand, commands, frame
from tests.differential.drawing import Draw

__all__ = ["pulsar_frame"]

#: Commands that a server answers to no client, or that no client sends, by the names of their bodies.
_OTHERS: Final = {
    field.number: field.name
    for field in BaseCommand.DESCRIPTOR.fields
    if field.number > 1 and field.name not in ("ping", "pong")
}


def pulsar_frame(draw: Draw, number: int) -> bytes:
    """A frame with the request id ``number``, as far as it has one."""
    if draw.pairs.again and draw.chance(0.1):
        again = BaseCommand()
        again.CopyFrom(draw.of(draw.pairs.again))
        again.getTopicsOfNamespace.request_id = number
        return commands.encode(again)
    kind = draw.random.random()
    if kind < 0.55:
        namespace = draw.namespace()
        return commands.get_topics(
            number,
            namespace,
            draw.of((0, 0, 1, 1, 2)),
            topics_pattern=draw.pattern(namespace) if draw.chance(0.6) else None,
            topics_hash=draw.kept("hash", "00000000") if draw.chance(0.3) else None,
            properties=draw.properties(),
        )
    if kind < 0.72:
        return commands.partitioned_metadata(number, draw.topic(), auto_create=draw.chance(0.5))
    if kind < 0.82:
        return commands.lookup(number, draw.topic(), properties=draw.properties(1))
    if kind < 0.88:
        return commands.get_schema(number, draw.topic(), draw.of((None, b"", b"\0" * 7 + b"\1")))
    if kind < 0.93:
        return commands.get_or_create_schema(number, draw.topic(), b"\x0a\x01a\x1a\x02{}\x20\x01")
    if kind < 0.96:
        # Of a mode that there is none of, which no constructor makes.
        known = commands.get_topics(number, draw.namespace(), 2)
        return known[:-1] + bytes([draw.of((3, 9, 127))])
    kind_of_other = draw.of(sorted(_OTHERS))
    command = BaseCommand(type=BaseCommand.Type.ValueType(kind_of_other))
    message = getattr(command, _OTHERS[kind_of_other])
    message.SetInParent()
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or field.message_type is not None:
            continue
        if field.name == "request_id":
            message.request_id = number
        elif field.type == field.TYPE_STRING:
            setattr(message, field.name, draw.topic())
        elif field.type == field.TYPE_BYTES:
            setattr(message, field.name, b"x")
        elif field.enum_type is not None:
            setattr(message, field.name, draw.of(field.enum_type.values).number)
        else:
            setattr(message, field.name, draw.random.randrange(2))
    return frame(command.SerializePartialToString())
