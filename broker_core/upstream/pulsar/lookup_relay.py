"""Lookups relayed to the brokers: clients learn from them where the brokers are, and go there themselves."""

from __future__ import annotations

import asyncio
from typing import Final

from broker_core.access.asker import Asker
from broker_core.client import ClientError, HandshakeRefused, LookupClient, ServerRefused, server_error
from broker_core.errors import ServerError
from broker_core.upstream.pulsar.connection_pool import ConnectionPool
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.wire.pulsar import (
    BaseCommand,
    CommandConnected,
    CommandGetSchemaResponse,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadataResponse,
    FeatureFlags,
    commands,
)

__all__ = ["RELAYED", "LookupRelay"]

#: The commands that are relayed.
RELAYED: Final = frozenset({BaseCommand.PARTITIONED_METADATA, BaseCommand.LOOKUP, BaseCommand.GET_SCHEMA})

_MAX_QUESTION: Final = (
    1024 * 1024
)  # bytes; brokers close a connection, which others share, over a frame too large
_MAX_PARTITIONS: Final = 2**31 - 1  # a Java int


class _BadAnswer(Exception):
    """The cluster's answer is not passed on; the message says why."""


class LookupRelay:
    """Relays PARTITIONED_METADATA, LOOKUP and GET_SCHEMA under request ids of its own, bounded in time and number.

    The brokers' errors are passed on with their codes. Where the relay itself has none to pass on, it says
    MetadataError: ServiceNotReady and TooManyRequests in these answers close connections at clients.
    docs/reference/pulsar-behaviour.md#answers-that-close-a-connection
    """

    def __init__(self, pool: ConnectionPool, options: UpstreamOptions) -> None:
        self._pool = pool
        self._options = options
        self._pending = 0
        self._server = CommandConnected()

    @property
    def pending(self) -> int:
        """Requests that are being relayed."""
        return self._pending

    @property
    def feature_flags(self) -> FeatureFlags:
        """What this server and the brokers together keep of the promises about lookups; none before they said so."""
        return FeatureFlags(
            supports_get_partitioned_metadata_without_auto_creation=(
                self._server.feature_flags.supports_get_partitioned_metadata_without_auto_creation
            )
        )

    def connected(self, server: CommandConnected) -> None:
        """Take note of what the brokers say of themselves."""
        self._server = server

    async def answer(self, command: BaseCommand, asker: Asker) -> bytes:  # noqa: ARG002
        """The whole frame that answers the command; raises nothing but a cancellation.

        ``asker`` is for whom it is asked: every request goes out as this server's own until there is authentication.
        """
        if self._pending >= self._options.lookups:
            return self._failed(command, "too many lookups wait for the brokers")
        if command.ByteSize() > _MAX_QUESTION:
            return self._failed(command, f"a request of {command.ByteSize()} bytes is too large")
        self._pending += 1
        request_id = commands.request_id_of(command)
        assert request_id is not None
        try:
            # Both times are needed: the second also covers the wait for a connection, and a second try.
            async with asyncio.timeout(self._options.lookup_timeout):
                question = _question(command)
                answer = await self._pool.use(lambda client: self._ask(client, question))
            return _passed_on(answer, request_id)
        except HandshakeRefused as refused:
            return self._failed(command, f"they refused the connection: {refused}")
        except ServerRefused as refused:
            return commands.error(request_id, refused.code, refused.message)
        except TimeoutError:
            return self._failed(command, f"no answer within {self._options.lookup_timeout:g} s")
        except (ClientError, _BadAnswer) as error:
            return self._failed(command, str(error))
        finally:
            self._pending -= 1

    async def _ask(self, client: LookupClient, question: BaseCommand) -> BaseCommand:
        return await client.raw(question, timeout=self._options.lookup_timeout)

    def _failed(self, command: BaseCommand, reason: str) -> bytes:
        return commands.refuse(
            command, ServerError.MetadataError, f"Cannot ask the brokers behind this server: {reason}"
        )


def _question(command: BaseCommand) -> BaseCommand:
    """The command as it is sent on: all that the client said, known here or not, but not who it claims to be.

    The original principal and its credentials are for proxies to fill in; from anybody else they would be an identity
    that nobody has checked, under the name of this server. A field 6 of PARTITIONED_METADATA that is absent stays
    absent, which means true.
    """
    question = BaseCommand()
    question.CopyFrom(command)
    if command.type == BaseCommand.PARTITIONED_METADATA:
        body = question.partitionMetadata
        body.ClearField("original_principal")
        body.ClearField("original_auth_data")
        body.ClearField("original_auth_method")
    elif command.type == BaseCommand.LOOKUP:
        lookup = question.lookupTopic
        lookup.ClearField("original_principal")
        lookup.ClearField("original_auth_data")
        lookup.ClearField("original_auth_method")
    return question


def _passed_on(answer: BaseCommand, request_id: int) -> bytes:
    """The answer as the client gets it."""
    if answer.type == BaseCommand.PARTITIONED_METADATA_RESPONSE:
        _check_partitions(answer.partitionMetadataResponse)
        answer.partitionMetadataResponse.request_id = request_id
    elif answer.type == BaseCommand.LOOKUP_RESPONSE:
        _check_lookup(answer.lookupTopicResponse)
        # A standalone broker sets this: the clients would send their data through this server, which is no proxy.
        answer.lookupTopicResponse.ClearField("proxy_through_service_url")
        answer.lookupTopicResponse.request_id = request_id
    else:
        _check_schema(answer.getSchemaResponse)
        answer.getSchemaResponse.request_id = request_id
    return commands.encode(answer)


def _check_partitions(body: CommandPartitionedTopicMetadataResponse) -> None:
    if body.response not in CommandPartitionedTopicMetadataResponse.LookupType.values():
        raise _BadAnswer(f"they answered with the unknown outcome {body.response}")
    if body.partitions > _MAX_PARTITIONS:
        raise _BadAnswer(f"they answered with {body.partitions} partitions")
    if body.HasField("error"):
        body.error, body.message = server_error(body.error, body.message)


def _check_lookup(body: CommandLookupTopicResponse) -> None:
    if body.response not in CommandLookupTopicResponse.LookupType.values():
        raise _BadAnswer(f"they answered with the unknown outcome {body.response}")
    if body.response != CommandLookupTopicResponse.Failed and not body.HasField("error"):
        if not body.brokerServiceUrl and not body.brokerServiceUrlTls:
            raise _BadAnswer("they answered without the address of a broker")
    if body.HasField("error"):
        body.error, body.message = server_error(body.error, body.message)


def _check_schema(body: CommandGetSchemaResponse) -> None:
    if body.HasField("error_code"):
        body.error_code, body.error_message = server_error(body.error_code, body.error_message)
