"""The access of a lookup command, in the words of the gates."""

from __future__ import annotations

from broker_core.access import Access, Asker
from broker_core.errors import Cause, InvalidName, ListingFailed
from broker_core.names import TopicName
from broker_core.pipeline import Pipeline
from broker_core.wire.pulsar import LOOKUP_COMMANDS, BaseCommand

__all__ = ["ask_rights", "lookup_access", "topic_of"]


async def ask_rights(pipeline: Pipeline, command: BaseCommand, asker: Asker) -> None:
    """Ask rules and gates about one of the lookup commands. Raises :exc:`~broker_core.errors.ListingFailed`."""
    if pipeline.has_guards:
        await pipeline.authorize(lookup_access(command, asker))


def lookup_access(command: BaseCommand, asker: Asker) -> Access:
    """The access that a lookup command needs.

    Raises :exc:`ListingFailed` for a topic without a valid namespace: no gate can let it pass.
    """
    try:
        topic = topic_of(command)
    except InvalidName as error:
        raise ListingFailed(str(error), cause=Cause.NAME, reason="bad_namespace") from None
    return Access(LOOKUP_COMMANDS[command.type].action, topic.namespace, topic, asker)


def topic_of(command: BaseCommand) -> TopicName:
    """The topic of a lookup command. Raises :exc:`~broker_core.errors.InvalidName`.

    Clients may leave the scheme out, and the namespace of a short name too (Pulsar's ``TopicName.get``).
    """
    name: str = LOOKUP_COMMANDS[command.type].request_body(command).topic
    if "://" not in name:
        name = f"persistent://{name}" if name.count("/") == 2 else f"persistent://public/default/{name}"
    return TopicName.parse(name)
