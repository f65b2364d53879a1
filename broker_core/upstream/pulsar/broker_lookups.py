"""One lookup at the brokers: sent to them, its redirects followed, and passed to the broker that serves the topic.

docs/reference/pulsar-behaviour.md#lookups
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from broker_core.access.asker import Asker
from broker_core.client import InvalidServiceUrl, LookupSession, ServiceUrl
from broker_core.memory.permit_budget import PermitBudget
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.wire.pulsar import (
    LOOKUP_COMMANDS,
    BaseCommand,
    CommandLookupTopicResponse,
    LookupCommand,
)

__all__ = ["MAX_REDIRECTS", "BadAnswer", "BrokerLookups"]

#: As many as clients follow themselves.
MAX_REDIRECTS: Final = 20

#: Bytes of a question up to which any number may be under way. Larger ones wait for each other: a connection that has
#: too much to send is given up, with the lookups of others.
_SMALL: Final = 1024
_LARGE_AT_ONCE: Final = 2 * 1024 * 1024


class BadAnswer(Exception):
    """The brokers' answer is not passed on, nor followed; the message says why."""


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

    async def ask(self, row: LookupCommand, question: BaseCommand, asker: Asker) -> BaseCommand:
        """The brokers' answer, which may be a refusal; ``question`` is changed.

        Raises :exc:`~broker_core.client.ClientError` and :exc:`BadAnswer`.
        """
        size = question.ByteSize()
        if size <= _SMALL:
            return await self._answer(row, question, asker)
        permit = await self._large.acquire(size, key=asker.connection)
        try:
            return await self._answer(row, question, asker)
        finally:
            permit.release()

    async def _answer(self, row: LookupCommand, question: BaseCommand, asker: Asker) -> BaseCommand:
        if row.request == BaseCommand.LOOKUP:
            return await self._look_up(question, asker)
        if not row.asks_owner:
            return await self._send(question, asker, None)
        lookup = BaseCommand(type=BaseCommand.LOOKUP)
        lookup.lookupTopic.topic = row.request_body(question).topic
        found = await self._look_up(lookup, asker)
        body = found.lookupTopicResponse
        fault = LOOKUP_COMMANDS[BaseCommand.LOOKUP].relayable_fault(found)
        if fault is not None:
            raise BadAnswer(fault)
        if body.response == CommandLookupTopicResponse.Failed or body.HasField("error"):
            return row.failed(0, body.error, body.message)  # type: ignore[arg-type]  # any number, as it came
        # A broker that is behind its service URL alone says so.
        owner = None if body.proxy_through_service_url else self._address(body)
        return await self._send(question, asker, owner)

    async def _look_up(self, question: BaseCommand, asker: Asker) -> BaseCommand:
        """The answer to LOOKUP that names the broker, or refuses."""
        address: str | None = None
        seen: set[tuple[str, bool]] = set()
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._send(question, asker, address)
            body = answer.lookupTopicResponse
            if body.response != CommandLookupTopicResponse.Redirect or body.HasField("error"):
                return answer
            address = self._address(body)
            step = (address, body.authoritative)
            if step in seen:
                raise BadAnswer(f"they redirect in a circle, to {address} again")
            seen.add(step)
            question.lookupTopic.authoritative = body.authoritative
            self._redirected()
        raise BadAnswer(f"they redirect more than {MAX_REDIRECTS} times, to {address} in the end")

    async def _send(self, question: BaseCommand, asker: Asker, address: str | None) -> BaseCommand:
        async def ask(client: LookupSession) -> BaseCommand:
            return await client.raw(question, timeout=self._timeout)

        return await self._connections.use(asker, ask, address=address)

    def _address(self, body: Any) -> str:
        """Where an answer to LOOKUP points: the address for TLS where the brokers are reached by TLS, never another."""
        named: str = body.brokerServiceUrlTls if self._is_tls else body.brokerServiceUrl
        kind = "a TLS address" if self._is_tls else "an address without TLS"
        if not named:
            raise BadAnswer(f"they answered without the address of a broker: this server needs {kind}")
        try:
            found = ServiceUrl.parse(named)
            for host, _ in found.addresses:
                host.encode("idna")  # as it is looked up
        except (InvalidServiceUrl, UnicodeError) as invalid:
            raise BadAnswer(f"they name a broker by an address that is none: {invalid!s:.200}") from None
        if found.is_tls != self._is_tls or len(found.addresses) != 1:
            raise BadAnswer(f"they name a broker by {named!r:.200}, and this server needs {kind}")
        return named
