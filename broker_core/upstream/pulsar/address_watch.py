"""Watch of each address of the service URL: whether a broker answers there, and accepts the gateway.

An idle connection to each shows it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

import structlog

from broker_core.client import (
    ClientError,
    CredentialsFailed,
    HandshakeRefused,
    LookupSession,
    OriginalPrincipal,
    is_of_identity,
)
from broker_core.concurrency import ended_within
from broker_core.errors import ServerError
from broker_core.service_addresses import Address, shown_address
from broker_core.upstream.pulsar.broker_credentials import Identities
from broker_core.upstream.pulsar.broker_health import BrokerHealth
from broker_core.upstream.pulsar.connector import Connector, IsProxy
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions

__all__ = ["PROBE", "AddressWatch", "RefusesGateway", "probe"]

#: The principal that the watch names if the gateway asks for principals: it has no rights anywhere.
PROBE: Final = "broker-core-probe"

_log = structlog.get_logger(__name__)


class RefusesGateway(HandshakeRefused):
    """The brokers refuse the gateway itself; the message says what to change."""

    def __str__(self) -> str:
        return self.message


async def probe(
    address: Address,
    connector: Connector,
    identities: Identities,
    *,
    is_tls: bool,
    on_lost: Callable[[], None] | None = None,
) -> LookupSession | None:
    """An idle connection; ``None`` if a broker answers but keeps no connection open that is for no client.

    Raises :exc:`ClientError`: :exc:`RefusesGateway` if no client could be served for that reason.
    """

    async def attempt(
        original: OriginalPrincipal | None, lost: Callable[[], None] | None = on_lost
    ) -> LookupSession:
        identity = identities.of_gateway(original)
        return await connector.connect(address, identity, is_tls=is_tls, on_lost=lost)

    where = shown_address(address)
    if identities.by_client:
        try:
            return await attempt(None)
        except HandshakeRefused as refused:
            if is_of_identity(refused):
                return None  # it wants credentials, and the gateway has none of its own
            raise
    if not identities.forwards:
        try:
            return await attempt(None)
        except HandshakeRefused as refused:
            if refused.code is ServerError.AuthorizationError:
                raise RefusesGateway(
                    refused.code,
                    f"{where} refuses the gateway ({refused.message}): if its role is one of proxyRoles, clients must "
                    "be authenticated here ([authentication])",
                ) from None
            raise _refusal(where, refused) from None
    try:
        return await attempt(OriginalPrincipal(PROBE))
    except HandshakeRefused as refused:
        if refused.code is ServerError.AuthorizationError:
            raise RefusesGateway(
                refused.code,
                f"{where} does not take the gateway for a proxy ({refused.message}): its role must be one of "
                "proxyRoles at the brokers",
            ) from None
        if refused.code is not ServerError.AuthenticationError:
            raise
    # Either its own credentials are refused, or those of the original principal are missing.
    try:
        # Its end, which is at once, says nothing of the address.
        client = await attempt(None, None)
    except HandshakeRefused as again:
        if again.code is not ServerError.AuthorizationError:
            raise _refusal(where, again) from None
    else:
        client.abort()
    if identities.sends_originals:
        return None
    raise RefusesGateway(
        ServerError.AuthenticationError,
        f"{where} verifies the credentials of clients too (authenticateOriginalAuthData): "
        # Without an equals sign, after which the log would hide a secret.
        "turn upstream.original_auth_data on",
    )


def _refusal(where: str, refused: HandshakeRefused) -> HandshakeRefused:
    if refused.code is not ServerError.AuthenticationError:
        return refused
    return RefusesGateway(
        refused.code,
        f"{where} refuses the credentials of the gateway ({refused.message}): see [upstream] token and tls",
    )


class AddressWatch:
    """One task for each address: connects, stays connected, and connects again after a pause, if the connection broke,
    or other attempts fail or count as failed.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        health: BrokerHealth,
        connector: Connector,
        identities: Identities,
        *,
        is_tls: bool,
    ) -> None:
        self._options = options
        self._health = health
        self._connector = connector
        self._identities = identities
        self._is_tls = is_tls
        self._tasks: list[asyncio.Task[None]] = []
        self._tried: dict[Address, asyncio.Event] = {}
        self._open: set[LookupSession] = set()
        #: An address that is a pulsar-proxy; the message of its refusal.
        self.proxy: IsProxy | None = None

    @property
    def connections(self) -> int:
        """Open connections."""
        return len(self._open)

    async def start(self, wait: float) -> None:
        """Begin, and wait at most ``wait`` seconds until each address was tried once."""
        loop = asyncio.get_running_loop()
        for address in self._health.addresses:
            self._tried[address] = asyncio.Event()
            self._tasks.append(loop.create_task(self._watch(address)))
        await ended_within(wait, asyncio.gather(*(tried.wait() for tried in self._tried.values())))

    async def stop(self) -> None:
        """End all tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _watch(self, address: Address) -> None:
        doubt = self._health.doubt[address]
        while True:
            doubt.clear()
            client: LookupSession | None = None
            untried = False
            try:
                client = await probe(
                    address, self._connector, self._identities, is_tls=self._is_tls, on_lost=doubt.set
                )
                self._health.succeeded(address)
                if client is not None:
                    self._open.add(client)
            except CredentialsFailed as failed:
                self._health.untried(address, str(failed))
                untried = True
            except ClientError as failed:
                if isinstance(failed, IsProxy):
                    self.proxy = failed
                self._health.failed(address, str(failed))
            finally:
                self._tried[address].set()
            try:
                if not untried and not self._health.is_down(address):
                    await self._until_doubt(doubt, client)
                if client is not None and not client.is_open:
                    self._health.lost(address)
                    await asyncio.sleep(self._options.first_backoff)
                elif self._health.is_down(address):
                    await self._health.until_due_again(address)
                else:  # there are no credentials, or others cannot connect to an address that it could
                    await asyncio.sleep(self._options.longest_backoff)
            finally:
                if client is not None:
                    self._open.discard(client)
                    await client.close()

    async def _until_doubt(self, doubt: asyncio.Event, client: LookupSession | None) -> None:
        """Wait until a connection breaks or cannot be made, or for a while if none is kept open."""
        pause = self._options.probe_pause * random.uniform(0.5, 1.0)  # noqa: S311  # only spreads attempts
        if client is not None and not client.is_open:
            return  # it broke before it could set `doubt`
        await ended_within(pause if client is None else None, doubt.wait())
