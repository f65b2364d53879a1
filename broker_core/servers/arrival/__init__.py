"""The way of a connection from its acceptance to its protocol: the preamble of a proxy, the TLS handshake."""

from __future__ import annotations

from broker_core.servers.arrival.arrivals import Arrivals, Refusals
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.server_certificate import (
    CertificateUnusable,
    ServerCertificate,
    certificate_names,
)
from broker_core.servers.arrival.tls_entrance import TlsEntrance, TlsMetrics, common_name, tls_entrances
from broker_core.servers.arrival.tls_transport import TlsTransport

__all__ = [
    "Arrivals",
    "CertificateUnusable",
    "Refusals",
    "RefusedArrival",
    "ServerCertificate",
    "TlsEntrance",
    "TlsMetrics",
    "TlsTransport",
    "certificate_names",
    "common_name",
    "tls_entrances",
]
