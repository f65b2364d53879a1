"""A lookup of a Pulsar client, on its way to the lookup service, and its access in the words of the gates."""

from __future__ import annotations

import structlog

from broker_core.access import Access, Asker
from broker_core.errors import Cause, InvalidName, ListingFailed, ServerError, lookup_code
from broker_core.memory import Permit, PermitBudget
from broker_core.names import TopicName
from broker_core.pipeline import Pipeline
from broker_core.servers.connection import OutgoingAnswer
from broker_core.servers.pulsar.listing_job import TOO_MANY_LOOKUPS
from broker_core.service import LookupService
from broker_core.wire.pulsar import LOOKUP_COMMANDS, BaseCommand, commands

__all__ = [
    "LookupJob",
    "ask_rights",
    "lookup_access",
    "namespace_of_lookup",
    "partitions_question",
    "topic_of",
]

_log = structlog.get_logger(__name__)


class LookupJob:
    """Job of one lookup command; ``deadline`` is a time of the event loop's clock."""

    __slots__ = ("_asker", "_command", "_deadline", "_lookups", "_permits")

    def __init__(self, lookups: LookupService, command: BaseCommand, asker: Asker, deadline: float) -> None:
        self._lookups = lookups
        self._command = command
        self._asker = asker
        self._deadline = deadline
        self._permits: list[Permit] = []  # of a large answer

    def small_answer(self) -> None:
        """``None``: no answer is known before it is asked for."""

    async def answer(self) -> OutgoingAnswer:
        frame = await self._lookups.answer(self._command, self._asker, self._permits.append)
        # Of another's making, so of any size: a schema has permits like a listing.
        return OutgoingAnswer(b"", frame, b"", self._deadline)

    def refusal(self, error: Exception) -> bytes:
        if isinstance(error, ListingFailed):
            return commands.refuse(self._command, lookup_code(error.code), error.message)
        # Whatever it is, the client gets an error, and the log the rest.
        asker = self._asker
        _log.error("lookup failed", peer=asker.remote_address, client=asker.client_version, exc_info=error)
        message = f"Internal error: {type(error).__name__}"
        return commands.refuse(self._command, ServerError.MetadataError, message)

    def no_place(self) -> bytes:
        # MetadataError: for TooManyRequests and ServiceNotReady here, clients close the connection.
        # docs/reference/pulsar-behaviour.md#answers-that-close-a-connection
        return commands.refuse(self._command, ServerError.MetadataError, TOO_MANY_LOOKUPS)

    def holds(self, budget: PermitBudget) -> bool:
        return any(permit.budget is budget for permit in self._permits)

    def release(self) -> None:
        while self._permits:
            self._permits.pop().release()


def namespace_of_lookup(command: BaseCommand) -> str:
    """The namespace of the topic that is looked up; empty if that is the name of none."""
    try:
        return str(TopicName.parse(LOOKUP_COMMANDS[command.type].request_body(command).topic).namespace)
    except InvalidName:
        return ""


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


def partitions_question(topic: str) -> BaseCommand:
    """The command that asks for the partitions of a topic, and creates none."""
    question = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
    question.partitionMetadata.topic = topic
    question.partitionMetadata.request_id = 0
    question.partitionMetadata.metadata_auto_creation_enabled = False
    return question
