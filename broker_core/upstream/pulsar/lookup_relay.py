"""Lookups relayed to the brokers: clients learn from them where the brokers are, and go there themselves."""

from __future__ import annotations

import asyncio
from typing import Final

from broker_core.access.asker import Asker
from broker_core.client import ClientError, HandshakeRefused, LookupClient, ServerRefused, server_error
from broker_core.errors import ServerError
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.wire.pulsar import (
    LOOKUP_COMMANDS,
    BaseCommand,
    CommandConnected,
    FeatureFlags,
    LookupCommand,
    commands,
)

__all__ = ["LookupRelay"]

_MAX_QUESTION: Final = (
    1024 * 1024
)  # bytes; brokers close a connection, which others share, over a frame too large


class _BadAnswer(Exception):
    """The cluster's answer is not passed on; the message says why."""


class LookupRelay:
    """Relays the lookup commands under request ids of its own, bounded in time and number.

    Each is sent as this server's own request: with all fields of the client, but without its claimed identity.

    The brokers' errors are passed on with their codes. Where the relay itself has none to pass on, it says
    MetadataError: ServiceNotReady and TooManyRequests in these answers close connections at clients.
    docs/reference/pulsar-behaviour.md#answers-that-close-a-connection
    """

    def __init__(self, connections: UpstreamConnections, options: UpstreamOptions) -> None:
        self._connections = connections
        self._options = options
        self._pending = 0
        self._server = CommandConnected()

    @property
    def feature_flags(self) -> FeatureFlags:
        """The feature flags of lookups that this server and the brokers share; none before the brokers sent theirs."""
        return FeatureFlags(
            supports_get_partitioned_metadata_without_auto_creation=(
                self._server.feature_flags.supports_get_partitioned_metadata_without_auto_creation
            )
        )

    def connected(self, server: CommandConnected) -> None:
        """Take note of what the brokers say of themselves."""
        self._server = server

    async def answer(self, command: BaseCommand, asker: Asker) -> bytes:
        """The whole frame that answers the command; raises nothing but a cancellation.

        ``asker`` is the client: it is asked over connections of its principal.
        """
        if self._pending >= self._options.lookups:
            return self._failed(command, "too many lookups wait for the brokers")
        if command.ByteSize() > _MAX_QUESTION:
            return self._failed(command, f"a request of {command.ByteSize()} bytes is too large")
        self._pending += 1
        row = LOOKUP_COMMANDS[command.type]
        request_id = commands.request_id_of(command)
        assert request_id is not None
        try:
            # Both times are needed: the second also covers the wait for a connection, and a second try.
            async with asyncio.timeout(self._options.lookup_timeout):
                question = row.without_identity(command)
                answer = await self._connections.use(asker, lambda client: self._ask(client, question))
            return _passed_on(row, answer, request_id)
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


def _passed_on(row: LookupCommand, answer: BaseCommand, request_id: int) -> bytes:
    """The answer as the client gets it."""
    fault = row.relayable_fault(answer)
    if fault is not None:
        raise _BadAnswer(fault)
    row.make_relayable(answer, request_id, server_error)
    return commands.encode(answer)
