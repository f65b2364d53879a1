"""The metrics of TLS: handshakes by outcome, and the end of each certificate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final

from broker_core.metrics import Metrics
from broker_core.servers.arrival.refused_arrival import REASONS
from broker_core.servers.arrival.server_certificate import ServerCertificate

__all__ = ["TlsMetrics"]

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
