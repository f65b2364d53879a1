"""The TLS of all listeners, by the settings: their certificates, which are read again and watched for their ends."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from broker_core.metrics import Metrics
from broker_core.reloads import Reloads
from broker_core.servers.arrival.server_certificate import ServerCertificate, warn_daily
from broker_core.servers.arrival.tls_entrance import TlsEntrance
from broker_core.servers.arrival.tls_metrics import TlsMetrics
from broker_core.service import FailurePace
from broker_core.settings import HttpTlsSettings, KafkaTlsSettings, PulsarTlsSettings, Settings

__all__ = ["tls_entrances"]


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
