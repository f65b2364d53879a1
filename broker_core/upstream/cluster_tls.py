"""TLS of the connections to the brokers of a cluster, by the settings of a gateway."""

from __future__ import annotations

from broker_core.client import ClientTls
from broker_core.settings import UpstreamTlsSettings

__all__ = ["brokers_tls"]


def brokers_tls(table: UpstreamTlsSettings | None) -> ClientTls | None:
    """The TLS of ``[upstream.tls]`` or ``[kafka.upstream.tls]``; ``None`` without the table."""
    if table is None:
        return None
    return ClientTls(table.ca, table.certificate, table.key, table.verify_hostname)
