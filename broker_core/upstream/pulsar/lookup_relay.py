"""Lookups relayed to the brokers: clients get the addresses of brokers, and connect to them themselves."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from broker_core.access import Asker
from broker_core.client import (
    ClientError,
    HandshakeRefused,
    OperationTimeout,
    ServerRefused,
    SharedQuestions,
    UnexpectedAnswer,
    server_error,
)
from broker_core.errors import ServerError, lookup_code
from broker_core.memory import Keep, Permit, PermitBudget, PermitError
from broker_core.metrics import Metrics
from broker_core.upstream.pulsar.broker_lookups import Admit, BrokerLookups
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.relay_metrics import RelayMetrics
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.wire.pulsar import (
    LOOKUP_COMMANDS,
    BaseCommand,
    CommandConnected,
    FeatureFlags,
    LookupCommand,
    commands,
)

__all__ = ["LookupRelay", "RelayPlaces"]

_log = structlog.get_logger(__name__)

#: Bytes of a lookup: brokers close a connection, which others share, over a frame that is too large.
_MAX_QUESTION: Final = 1024 * 1024
#: Copies of a large answer in memory until all askers have it: the received one, the message, and the frame to send.
_FRAMES: Final = 3
#: Fields of an answer that only hold for its sender. A standalone broker sets this one: clients would send their data
#: through the server that relays the answer.
_OF_THE_SENDER: Final = ("proxy_through_service_url",)
_NO_ROOM: Final = "there is no memory for their answer now"


class RelayPlaces:
    """Places for relayed lookups: at most ``limit`` at a time.

    An address gets a place while it has fewer than are free. So one address alone gets half of all places, ``n`` busy
    ones get one part in ``n + 1`` each, and the last part is always left for an address that has none. The lookups of
    one connection are bounded by its reader.
    """

    __slots__ = ("_by_address", "limit", "taken")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self._by_address: Counter[str] = Counter()

    def take(self, address: str) -> bool:
        """Take a place, if there is one for this address."""
        if self._by_address[address] >= self.limit - self.taken:
            return False
        self._by_address[address] += 1
        self.taken += 1
        return True

    def give_back(self, address: str) -> None:
        """Give back a place that this address took."""
        self.taken -= 1
        left = self._by_address[address] - 1
        if left:
            self._by_address[address] = left
        else:
            del self._by_address[address]


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class _Relayed:
    """The answer for all askers, whose request ids are put into it. ``outcome`` is a label of the metrics."""

    outcome: str
    answer: BaseCommand
    #: The permit of a large answer, until all askers have it.
    permit: Permit | None = None


class LookupRelay:
    """Relays the lookup commands under request ids of its own, bounded in time and number.

    Each is sent over a connection of the client's principal, with all of its fields but the identity that it claims.
    Equal lookups of a principal are asked once (:class:`~broker_core.client.SharedQuestions`).

    The brokers' errors are passed on with their codes. If the relay has none to pass on, it answers MetadataError:
    ServiceNotReady and TooManyRequests would make clients close their connections.
    docs/reference/pulsar-behaviour.md#answers-that-close-a-connection

    A large answer, such as a schema, is read and kept under permits of ``heap``.

    A relay that replaces a ``former`` one shares its places and metrics with it.
    """

    def __init__(
        self,
        connections: UpstreamConnections,
        options: UpstreamOptions,
        metrics: Metrics,
        heap: PermitBudget,
        former: LookupRelay | None = None,
    ) -> None:
        self._heap = heap
        self._connections = connections
        self._options = options
        self.places: RelayPlaces = RelayPlaces(options.lookups) if former is None else former.places
        self.metrics: RelayMetrics = (
            RelayMetrics(metrics, lambda: self.places.taken) if former is None else former.metrics
        )
        self._lookups = BrokerLookups(connections, options, self.metrics.redirected)
        self._shared: SharedQuestions[Asker, _Relayed] = SharedQuestions()
        # Connections to brokers that do and do not know PARTITIONED_METADATA without auto-creation, and the last one.
        self._connected: Counter[bool] = Counter()
        self._last = False

    @property
    def feature_flags(self) -> FeatureFlags:
        """The feature flags of lookups that this server and all connected brokers share; none before a broker sent its
        own.
        """
        is_shared = not self._connected[False] if self._connected.total() else self._last
        return FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=is_shared)

    def connected(self, server: CommandConnected) -> None:
        """Note the facts that a broker gives when it is connected."""
        self._last = _knows_metadata(server)
        self._connected[self._last] += 1

    def ended(self, server: CommandConnected) -> None:
        """Note that the connection to a broker ended."""
        self._connected[_knows_metadata(server)] -= 1

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        """The whole frame that answers the command; raises nothing but a cancellation.

        ``keep`` gets the permits of a large frame for the asker; without it they are given back.
        """
        row = LOOKUP_COMMANDS[command.type]
        size = command.ByteSize()
        if size > _MAX_QUESTION:
            self.metrics.refused(row)
            return self._failed(command, f"a request of {size} bytes is too large")
        address = asker.host
        if not self.places.take(address):
            self.metrics.refused(row)
            return self._failed(command, "too many lookups wait for the brokers")
        started = time.perf_counter()
        outcome = "gone"
        try:
            question = row.without_identity(command)
            row.request_body(question).request_id = 0
            # The principal stands for all that the brokers get of a client.
            key = (asker.role, asker.original_principal, question.SerializeToString())
            relayed = await self._shared.ask(key, partial(self._ask, row, question), asker)
            outcome = relayed.outcome
        finally:
            self.places.give_back(address)
            self.metrics.ended(row, outcome, time.perf_counter() - started)
        answer = relayed.answer
        if relayed.permit is not None:
            size = answer.ByteSize()
            try:
                permit = await self._permit_of(relayed.permit, size, asker)
            except PermitError:
                return self._failed(command, _NO_ROOM)
            if keep is None:
                permit.release()
            else:
                keep(permit)
        row.response_body(answer).request_id = row.request_body(command).request_id
        return commands.encode(answer)

    async def _permit_of(self, read: Permit, size: int, asker: Asker) -> Permit:
        """Permits for the frame of one asker: split off from the answer's, while there are some."""
        if read.count:
            return self._heap.split(read, size)
        return await self._heap.acquire(size, key=asker.connection)

    async def _ask(self, row: LookupCommand, question: BaseCommand, asker: Asker, askers: int) -> _Relayed:
        self.metrics.count_question(row, askers)
        relayed = await self._admitted_answer(row, question, asker)
        denial = row.denial(relayed.answer)
        if denial is not None:
            _log.info(
                "denied by the brokers",
                peer=asker.remote_address,
                role=asker.role,
                action=row.action,
                message=denial,
            )
            relayed = replace(relayed, outcome="denied")
        if relayed.permit is not None:
            weakref.finalize(relayed, relayed.permit.release)
        return relayed

    async def _admitted_answer(self, row: LookupCommand, question: BaseCommand, asker: Asker) -> _Relayed:
        held: list[Permit] = []

        async def admit(size: int) -> None:
            while held:  # of a connection that was lost
                held.pop().release()
            held.append(await self._heap.acquire(_FRAMES * size, key=asker.connection))

        try:
            relayed = await self._answer_of_brokers(row, question, asker, admit)
        except BaseException:
            for permit in held:
                permit.release()
            raise
        return replace(relayed, permit=held[0]) if held else relayed

    async def _answer_of_brokers(
        self, row: LookupCommand, question: BaseCommand, asker: Asker, admit: Admit
    ) -> _Relayed:
        timeout = self._options.lookup_timeout
        try:
            # Both times are needed: this one also covers the wait for a connection, and a second try.
            async with asyncio.timeout(timeout):
                answer = await self._lookups.ask(row, question, asker, admit)
        except HandshakeRefused as refused:
            reason = f"they refused the connection: {refused}"
            if self._connections.is_of_client(refused):  # asking again helps nobody
                return _no_answer(row, "refused", reason, ServerError.AuthorizationError)
            return _no_answer(row, "unreachable", reason)
        except ServerRefused as refused:
            # Not passed on as an ERROR, which C++ does not look for; so two codes would close the connection.
            message = commands.error_text(refused.message)
            return _Relayed("refused", row.failed(0, lookup_code(refused.code), message))
        except (TimeoutError, OperationTimeout):
            return _no_answer(row, "timeout", f"no answer within {timeout:g} s")
        except PermitError:
            return _no_answer(row, "timeout", _NO_ROOM)
        except UnexpectedAnswer as error:
            return _no_answer(row, "bad_answer", str(error))
        except ClientError as error:
            return _no_answer(row, "unreachable", str(error))
        fault = row.relayable_fault(answer)
        if fault is not None:
            return _no_answer(row, "bad_answer", fault)
        row.make_relayable(answer, 0, server_error, _OF_THE_SENDER)
        return _Relayed("refused" if row.is_refusal(answer) else "answered", answer)

    def _failed(self, command: BaseCommand, reason: str) -> bytes:
        return commands.refuse(command, ServerError.MetadataError, _cannot_ask(reason))


def _knows_metadata(server: CommandConnected) -> bool:
    return server.feature_flags.supports_get_partitioned_metadata_without_auto_creation


def _no_answer(
    row: LookupCommand, outcome: str, reason: str, code: ServerError = ServerError.MetadataError
) -> _Relayed:
    return _Relayed(outcome, row.failed(0, code, commands.error_text(_cannot_ask(reason))))


def _cannot_ask(reason: str) -> str:
    return f"Cannot ask the brokers behind this server: {reason}"
