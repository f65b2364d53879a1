"""Lookups of topics: the interface for Pulsar's commands, and questions to it without Pulsar's messages."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from broker_core.access import Asker
from broker_core.errors import Cause, ListingFailed, ServerError, cause_of
from broker_core.memory import Keep
from broker_core.names import TopicName
from broker_core.wire.pulsar import HEADER_SIZE, LOOKUP_COMMANDS, BaseCommand, FeatureFlags, commands

__all__ = ["BrokerSchema", "LookupQuestions", "LookupService"]

_VERSION: Final = struct.Struct(">q")


class LookupService(Protocol):
    """Answers the commands of :data:`broker_core.wire.pulsar.lookup_commands.LOOKUP_COMMANDS`."""

    @property
    def feature_flags(self) -> FeatureFlags:
        """The feature flags of these commands for CONNECTED."""

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        """Answer a command with a whole frame, refusals included. The first service asks rules and gates.

        ``keep`` is given the permits of a large frame, which are its own to release; without it they are given back.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """


class BrokerSchema(NamedTuple):
    """A schema as brokers have it; ``kind`` is the number of its type."""

    kind: int
    data: bytes
    version: int
    properties: Mapping[str, str]


class LookupQuestions:
    """Questions to the brokers. A refusal is a :exc:`~broker_core.errors.ListingFailed`, by its cause.

    ``missing`` is its text if there is no such topic.
    """

    def __init__(self, lookups: LookupService) -> None:
        self._lookups = lookups

    async def broker(
        self, topic: TopicName, asker: Asker, missing: str, *, authoritative: bool, listener: str | None
    ) -> tuple[str, str]:
        """The addresses of the broker that serves a topic: the plain one, and the one for TLS; empty for none."""
        command = BaseCommand(type=BaseCommand.LOOKUP)
        command.lookupTopic.authoritative = authoritative
        if listener:
            command.lookupTopic.advertised_listener_name = listener
        found = (await self._answer(command, topic, asker, missing)).lookupTopicResponse
        return found.brokerServiceUrl, found.brokerServiceUrlTls

    async def partitions(self, topic: TopicName, asker: Asker, missing: str, *, may_create: bool) -> int:
        """The number of partitions of a topic, 0 for one without; with ``may_create``, brokers may create it."""
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        command.partitionMetadata.metadata_auto_creation_enabled = may_create
        return (await self._answer(command, topic, asker, missing)).partitionMetadataResponse.partitions

    async def schema(self, topic: TopicName, asker: Asker, missing: str, version: int | None) -> BrokerSchema:
        """The schema of a topic: that of a version, or the newest."""
        command = BaseCommand(type=BaseCommand.GET_SCHEMA)
        if version is not None:
            command.getSchema.schema_version = _VERSION.pack(version)
        body = (await self._answer(command, topic, asker, missing)).getSchemaResponse
        number = body.schema_version
        return BrokerSchema(
            body.schema.type,
            body.schema.schema_data,
            _VERSION.unpack(number)[0] if len(number) == _VERSION.size else 0,
            {pair.key: pair.value for pair in body.schema.properties},
        )

    async def _answer(
        self, command: BaseCommand, topic: TopicName, asker: Asker, missing: str
    ) -> BaseCommand:
        row = LOOKUP_COMMANDS[command.type]
        body = row.request_body(command)
        body.topic, body.request_id = str(topic), 0
        frame = await self._lookups.answer(command, asker)
        answer = commands.decode(frame[HEADER_SIZE:])
        if answer.type == BaseCommand.ERROR:
            raise _refused(answer.error.error, answer.error.message, missing)
        if row.is_refusal(answer):
            raise _refused(*row.error(answer), missing)
        return answer


def _refused(code: int, message: str, missing: str) -> ListingFailed:
    cause = cause_of(ServerError(code), Cause.UPSTREAM)
    return ListingFailed(missing if cause is Cause.NOT_FOUND else message, cause=cause)
