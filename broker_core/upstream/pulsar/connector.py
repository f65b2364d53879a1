"""Connecting to one broker: TLS, the identity, and the reasons to refuse a broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from broker_core.client import (
    ClientError,
    ClientTls,
    ConnectionLost,
    ConnectTimeout,
    Credentials,
    CredentialsFailed,
    HandshakeRefused,
    LookupSession,
    TlsFailed,
    UnexpectedAnswer,
)
from broker_core.errors import ServerError
from broker_core.service_addresses import Address, shown_address
from broker_core.upstream.cluster_tls import brokers_tls
from broker_core.upstream.pulsar.broker_credentials import Identity
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.wire.pulsar import CommandConnected

__all__ = ["OUTCOMES", "Connector", "IsProxy"]

#: The outcomes of attempts to connect, for metrics.
OUTCOMES: Final = (
    "connected",
    "unreachable",
    "timeout",
    "tls",
    "refused",
    "credentials",
    "protocol",
    "proxy",
)

_log = structlog.get_logger(__name__)


class IsProxy(ConnectionLost):
    """The service is a pulsar-proxy, which relays neither the identity nor the facts that a gateway needs."""


class Connector:
    """Makes connections; ``counts`` are their outcomes. ``on_connected`` is called with each broker's CONNECTED, and
    ``on_ended`` with it when that connection ends.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        *,
        on_connected: Callable[[CommandConnected], None],
        on_ended: Callable[[CommandConnected], None] = lambda _server: None,
    ) -> None:
        self._options = options
        self._on_connected = on_connected
        self._on_ended = on_ended
        self.counts: Counter[str] = Counter(dict.fromkeys(OUTCOMES, 0))
        self._tls = brokers_tls(options.upstream.tls) or ClientTls()
        self._warned: str | None = None

    async def connect(
        self,
        address: Address,
        identity: Identity,
        *,
        is_tls: bool,
        max_frame: int | None = None,
        on_lost: Callable[[], None] | None = None,
    ) -> LookupSession:
        """A connection to the broker at ``address``. Raises :exc:`ClientError`.

        An own token that is refused is replaced, once, if there is another one.
        """
        announced: list[CommandConnected] = []

        def ended() -> None:
            if announced:
                self._on_ended(announced.pop())
            if on_lost is not None:
                on_lost()

        try:
            client = await self._with_another_token(address, identity, is_tls, max_frame, ended)
        except ClientError as failed:
            self.counts[_outcome(failed)] += 1
            raise
        finally:
            self._log_tls()
        server = client.server
        # docs/reference/pulsar-behaviour.md#proxies
        if not server.HasField("max_message_size"):
            await client.close()
            self.counts["proxy"] += 1
            raise IsProxy(
                f"{shown_address(address)} is a pulsar-proxy (or a broker before 2.4): upstream.service_url must be "
                "that of the brokers, for a proxy passes on neither the principal of a client nor what brokers say of "
                "themselves"
            )
        self.counts["connected"] += 1
        if client.is_open:  # or nobody would hear of its end
            announced.append(server)
            self._on_connected(server)
        return client

    async def _with_another_token(
        self,
        address: Address,
        identity: Identity,
        is_tls: bool,
        max_frame: int | None,
        on_lost: Callable[[], None],
    ) -> LookupSession:
        for is_last in (False, True):
            sent: list[bytes] = []
            client = self._client(address, identity, sent, is_tls, max_frame, on_lost)
            try:
                await client.connect()
                return client
            except HandshakeRefused as refused:
                if is_last or refused.code is not ServerError.AuthenticationError or not sent:
                    raise
                if identity.after_refusal is None or not await identity.after_refusal(sent[0]):
                    raise
        raise AssertionError("unreachable")

    def _client(
        self,
        address: Address,
        identity: Identity,
        sent: list[bytes],
        is_tls: bool,
        max_frame: int | None,
        on_lost: Callable[[], None],
    ) -> LookupSession:
        own = identity.credentials

        async def data() -> bytes:
            found = await own.current() or b""
            sent[:] = [found]
            return found

        options = self._options
        return LookupSession(
            f"pulsar{'+ssl' if is_tls else ''}://{shown_address(address)}",
            client_version=options.client_version,
            connect_timeout=options.connect_timeout,
            keep_alive=min(options.silence, options.pulsar.keep_alive),
            max_frame=max_frame,
            tls=self._tls,
            credentials=own if own.data is None else Credentials(own.method, data),
            original=identity.original,
            on_lost=on_lost,
        )

    def _log_tls(self) -> None:
        """Log once that changed files of TLS cannot be used."""
        problem = self._tls.problem
        if problem is not None and problem != self._warned:
            _log.error("upstream.tls: the former files stay in use", reason=problem)
        self._warned = problem


def _outcome(failed: ClientError) -> str:
    for kind, outcome in (
        (HandshakeRefused, "refused"),
        (CredentialsFailed, "credentials"),
        (ConnectTimeout, "timeout"),
        (TlsFailed, "tls"),
        (UnexpectedAnswer, "protocol"),
    ):
        if isinstance(failed, kind):
            return outcome
    return "unreachable"
