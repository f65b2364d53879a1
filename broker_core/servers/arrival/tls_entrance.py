"""The TLS of listeners: certificates, metrics, and the way of a connection from its socket to the end of its handshake.

A client that sends nothing holds a socket and a timer. Once its first record is whole, it waits for one of a few
places, longer if its address has failed often; the steps of all handshakes share the turns of the event loop with the
requests of others.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from itertools import product
from typing import Any, Final

from broker_core.concurrency import loop_turn
from broker_core.metrics import Metrics
from broker_core.reloads import Reloads
from broker_core.servers.arrival.client_hello import client_hello
from broker_core.servers.arrival.handshake_places import HandshakePlaces
from broker_core.servers.arrival.refused_arrival import REASONS, RefusedArrival
from broker_core.servers.arrival.server_certificate import ServerCertificate, warn_daily
from broker_core.servers.arrival.socket_waits import readable, writable
from broker_core.service import FailurePace
from broker_core.settings import HttpTlsSettings, KafkaTlsSettings, PulsarTlsSettings, Settings

__all__ = ["TlsEntrance", "TlsMetrics", "common_name", "tls_entrances"]

_OUTCOMES: Final = ("done", *(reason for reason in REASONS if reason != "preamble"))


class TlsMetrics:
    """Declared once for all listeners of a broker. ``handshake(listener, outcome)`` counts one."""

    def __init__(self, metrics: Metrics, listeners: tuple[str, ...]) -> None:
        self.handshake = metrics.counter(
            "tls_handshakes",
            "TLS handshakes by outcome.",
            "listener",
            "outcome",
            known=product(listeners, _OUTCOMES),
        )
        self._certificates: dict[str, ServerCertificate] = {}
        self._under_way: dict[str, Callable[[], int]] = {}
        metrics.gauge(
            "tls_certificate_expires_seconds",
            "When the certificate in use expires, in Unix seconds.",
            lambda: {name: each.expires_at for name, each in self._certificates.items()},
            "listener",
        )
        metrics.gauge(
            "tls_handshakes_under_way",
            "TLS handshakes that have begun, or wait for a place.",
            lambda: {name: count() for name, count in self._under_way.items()},
            "listener",
        )

    def show(self, listener: str, certificate: ServerCertificate, under_way: Callable[[], int]) -> None:
        """Show the certificate of a listener, and the number of its handshakes."""
        self._certificates[listener] = certificate
        self._under_way[listener] = under_way


#: Seconds in which a client has to send its first record.
_HELLO: Final = 10.0
#: Handshakes under way at once; each holds some 50 KB. So many that hundreds of clients that stop in the middle, each
#: of an address of its own, are in nobody's way.
_PLACES: Final = 1024


class TlsEntrance:
    """The handshakes of one listener, with the certificate that is current at the moment of each."""

    def __init__(
        self,
        listener: str,
        certificate: ServerCertificate,
        metrics: TlsMetrics,
        pace: FailurePace,
        *,
        places: int = _PLACES,
    ) -> None:
        self.certificate = certificate
        self._pace = pace
        self._places = HandshakePlaces(places)
        self._listener = listener
        self._count = metrics.handshake
        metrics.show(listener, certificate, lambda: self._places.taken + self._places.waiting)

    async def enter(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        """Shake hands with a client of this address. The socket is closed if that fails: :exc:`RefusedArrival`."""
        try:
            secured = await self._handshake(sock, host)
        except RefusedArrival as refused:
            self._count(self._listener, refused.reason)
            if refused.is_attempt:
                self._pace.failed(host)
            raise
        self._count(self._listener, "done")
        return secured

    async def _handshake(self, sock: socket.socket, host: str) -> ssl.SSLSocket:
        opened: socket.socket = sock
        try:
            try:
                async with asyncio.timeout(_HELLO):
                    await client_hello(sock)
            except TimeoutError:
                raise RefusedArrival("time", "no TLS handshake came") from None
            delay = self._pace.delay(host)
            if delay:
                await asyncio.sleep(delay)
            try:
                async with self._places.place(host):
                    opened = secured = self.certificate.context.wrap_socket(
                        sock, server_side=True, do_handshake_on_connect=False
                    )
                    await _shake_hands(secured)
            except TimeoutError:
                raise RefusedArrival("time", "the TLS handshake took too long", is_attempt=True) from None
            except (OSError, ValueError) as error:  # ValueError of wrap_socket: the socket is reset just now
                raise _refusal(error) from None
        except BaseException:
            opened.close()
            raise
        return secured


def common_name(secured: ssl.SSLSocket) -> str | None:
    """The common name in the client's certificate, which the handshake has verified; ``None`` without exactly one."""
    certificate: Mapping[str, Any] = secured.getpeercert() or {}
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return str(names[0]) if len(names) == 1 else None


async def _shake_hands(secured: ssl.SSLSocket) -> None:
    turn = loop_turn()
    while True:
        await turn.time()
        try:
            secured.do_handshake()
        except ssl.SSLWantReadError:
            await readable(secured)
        except ssl.SSLWantWriteError:
            await writable(secured)
        else:
            return


def _refusal(error: Exception) -> RefusedArrival:
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"the client's certificate is refused: {error.verify_message}"
        return RefusedArrival("certificate", text, is_attempt=True)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError) or not isinstance(error, ssl.SSLError):
        return RefusedArrival("closed", "closed during the TLS handshake", is_attempt=True)
    said = str(error.reason or error.strerror or error).replace("_", " ").lower()
    if "alert" in said:
        text = f"the client ends the TLS handshake: {said}"
        return RefusedArrival("alert", text, is_attempt=True)
    return RefusedArrival("negotiation", f"the TLS handshake failed: {said}", is_attempt=True)


async def tls_entrances(
    settings: Settings, metrics: Metrics, reloads: Reloads, stack: AsyncExitStack
) -> dict[str, TlsEntrance]:
    """The entrance of each listener by the name of its table; ``stack`` ends their watches.

    Raises :exc:`~.server_certificate.CertificateUnusable`.
    """
    tables: dict[str, PulsarTlsSettings | HttpTlsSettings | KafkaTlsSettings | None] = {
        "pulsar": settings.pulsar.tls,
        "http": None if settings.http is None else settings.http.tls,
        "kafka": None if settings.kafka is None else settings.kafka.tls,
    }
    certificates: dict[str, ServerCertificate] = {}
    for name, table in tables.items():
        if table is not None:
            files = (table.certificate, table.key, table.client_ca)
            # kafka-python 2 closes a connection that is readable before its first request.
            tickets = name != "kafka"
            certificate = await asyncio.to_thread(ServerCertificate, f"{name}.tls", *files, tickets=tickets)
            reloads.add(f"{name}.tls", certificate.reload, certificate.files)
            certificates[name] = certificate
    pace, shown = FailurePace(), TlsMetrics(metrics, tuple(certificates))
    if not certificates:
        return {}
    warning = asyncio.create_task(warn_daily(list(certificates.values())), name="certificates")
    stack.callback(warning.cancel)
    return {name: TlsEntrance(name, each, shown, pace) for name, each in certificates.items()}
