"""The certificates of listeners over TLS: whether they are usable, for how long, and for which hosts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.plugin_api import Check
from broker_core.quantities import ListenAddress
from broker_core.servers.arrival import CertificateUnusable, ServerCertificate, certificate_names

if TYPE_CHECKING:
    from broker_core.settings import HttpTlsSettings, KafkaTlsSettings, PulsarTlsSettings, Settings

__all__ = ["certificate_checks"]


def certificate_checks(settings: Settings) -> Iterator[Check]:
    """One finding or more for each table of TLS."""
    if settings.pulsar.tls is not None:
        yield from _checked("pulsar.tls", settings.pulsar.tls, settings.pulsar.tls.advertised)
    if settings.http is not None and settings.http.tls is not None:
        yield from _checked("http.tls", settings.http.tls, "")
    if settings.kafka is not None and settings.kafka.tls is not None:
        tls = settings.kafka.tls
        host = ListenAddress.parse(tls.advertised).host if tls.advertised else ""
        yield from _checked("kafka.tls", tls, host)


def _checked(
    name: str, table: PulsarTlsSettings | HttpTlsSettings | KafkaTlsSettings, advertised: str
) -> Iterator[Check]:
    try:
        certificate = ServerCertificate(name, table.certificate, table.key, table.client_ca)
        names = certificate_names(table.certificate, f"{name}.certificate")
    except CertificateUnusable as error:
        yield Check.error(name, str(error).removeprefix(f"{name}."))
        return
    warning = certificate.expiry_warning
    if warning is not None:
        yield Check.warning(name, warning)
    if advertised and not any(_is_for(each, advertised) for each in names):
        yield Check.warning(
            f"{name}.advertised",
            f"{table.certificate} is for {_listed(names)}, not for {advertised}: clients refuse it",
        )
    if warning is None:
        end = dt.datetime.fromtimestamp(certificate.expires_at, dt.UTC)
        yield Check.ok(name, f"{table.certificate.name} is valid until {end:%Y-%m-%d} for {_listed(names)}")


def _is_for(name: str, host: str) -> bool:
    """Whether a name of a certificate, which may begin with ``*.``, is for a host."""
    name, host = name.lower(), host.lower()
    return name == host or (name.startswith("*.") and host.partition(".")[2] == name[2:])


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "no host"
