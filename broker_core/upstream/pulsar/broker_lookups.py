"""One lookup at the brokers: sent to them, its redirects followed, and passed to the broker that serves the topic.

docs/reference/pulsar-behaviour.md#lookups
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from broker_core.access import Asker
from broker_core.client import LookupSession, ServiceUrl, UnexpectedAnswer, broker_url, follow_redirects
from broker_core.memory import PermitBudget
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.wire.pulsar import LOOKUP_COMMANDS, BaseCommand, CommandLookupTopicResponse, LookupCommand

__all__ = ["Admit", "BrokerLookups"]

#: Waits until an answer of so many bytes may be read.
Admit: TypeAlias = Callable[[int], Awaitable[None]]

#: Bytes of a question up to which any number may be under way. Larger ones wait for each other: a connection that has
#: too much to send is given up, with the lookups of others.
_SMALL: Final = 1024
_LARGE_AT_ONCE: Final = 2 * 1024 * 1024


class BrokerLookups:
    """Asks over ``connections``; ``redirected`` is called for each redirect that is followed."""

    def __init__(
        self, connections: UpstreamConnections, options: UpstreamOptions, redirected: Callable[[], None]
    ) -> None:
        self._connections = connections
        self._timeout = options.lookup_timeout
        self._redirected = redirected
        self._is_tls = ServiceUrl.parse(options.upstream.service_url).is_tls
        self._large = PermitBudget(_LARGE_AT_ONCE, name="large lookups")

    async def ask(
        self, row: LookupCommand, question: BaseCommand, asker: Asker, admit: Admit | None = None
    ) -> BaseCommand:
        """The brokers' answer, which may be a refusal; ``question`` is changed.

        ``admit`` is awaited with the size of an answer of more than 64 KiB before it is read. Raises
        :exc:`~broker_core.client.ClientError`, and what ``admit`` raises.
        """
        size = question.ByteSize()
        if size <= _SMALL:
            return await self._answer(row, question, asker, admit)
        permit = await self._large.acquire(size, key=asker.connection)
        try:
            return await self._answer(row, question, asker, admit)
        finally:
            permit.release()

    async def _answer(
        self, row: LookupCommand, question: BaseCommand, asker: Asker, admit: Admit | None
    ) -> BaseCommand:
        if row.request == BaseCommand.LOOKUP:
            return await self._look_up(question, asker)
        if not row.asks_owner:
            return await self._send(question, asker, None, admit)
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic = row.request_body(question).topic
        found = await self._look_up(lookup, asker)
        body = found.lookupTopicResponse
        fault = LOOKUP_COMMANDS[BaseCommand.LOOKUP].relayable_fault(found)
        if fault is not None:
            raise UnexpectedAnswer(fault)
        if body.response == CommandLookupTopicResponse.Failed or body.HasField("error"):
            return row.failed(0, body.error, body.message)  # type: ignore[arg-type]  # any number, as it came
        # A broker that can be reached by its service URL alone says so.
        owner = None if body.proxy_through_service_url else broker_url(body, is_tls=self._is_tls)
        return await self._send(question, asker, owner, admit)

    async def _look_up(self, question: BaseCommand, asker: Asker) -> BaseCommand:
        """The answer to LOOKUP that names the broker, or refuses."""

        async def send(address: str | None, authoritative: bool | None) -> BaseCommand:
            if authoritative is not None:
                question.lookupTopic.authoritative = authoritative
            return await self._send(question, asker, address)

        return await follow_redirects(send, is_tls=self._is_tls, redirected=self._redirected)

    async def _send(
        self, question: BaseCommand, asker: Asker, address: str | None, admit: Admit | None = None
    ) -> BaseCommand:
        async def ask(client: LookupSession) -> BaseCommand:
            return await client.raw(question, timeout=self._timeout, admit=admit)

        return await self._connections.use(asker, ask, address=address)
