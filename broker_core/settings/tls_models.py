"""The tables of TLS for servers: ``[pulsar.tls]`` and ``[http.tls]``."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer

from broker_core.quantities import ListenAddress
from broker_core.settings.authentication_model import OptionalFile
from broker_core.settings.table import Table

__all__ = ["HttpTlsSettings", "NamedFile", "Network", "PulsarTlsSettings"]

_CERTIFICATE: Final = (
    "A PEM file with the certificate of the server, and those that link it to its authority. A relative path is taken "
    "as that of the catalogue."
)
_KEY: Final = "A PEM file with the key of the certificate, without a password."
_CLIENT_CA: Final = (
    "A PEM file with the authorities of clients: a certificate that a client shows must be one of theirs."
)


def _network(value: object) -> object:
    if isinstance(value, IPv4Network | IPv6Network):
        return value
    try:
        return ip_network(str(value).strip())
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address or a network such as '10.0.0.0/8': {error}") from None


def _file(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("it names no file")
    return value


#: A network, or one address.
Network = Annotated[
    IPv4Network | IPv6Network,
    BeforeValidator(_network),
    PlainSerializer(str, return_type=str, when_used="json"),
]
#: A file, which the setting must name.
NamedFile = Annotated[Path, BeforeValidator(_file)]


class PulsarTlsSettings(Table):
    """``[pulsar.tls]``: Pulsar's protocol over TLS, on an address of its own; without the table there is none."""

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 6651),
        description="HOST:PORT to serve clients on over TLS; port 0: a free one.",
    )
    advertised: str = Field(
        default="",
        description="The host by which clients reach the server; `check` says whether the certificate is for it.",
    )
    certificate: NamedFile = Field(description=_CERTIFICATE)
    key: NamedFile = Field(description=_KEY)
    client_ca: OptionalFile = Field(default=None, description=_CLIENT_CA)


class HttpTlsSettings(Table):
    """``[http.tls]``: HTTP over TLS, on an address of its own; without the table there is none."""

    listen: ListenAddress = Field(
        default=ListenAddress("127.0.0.1", 8443),
        description="HOST:PORT of the same pages over TLS; port 0: a free one.",
    )
    certificate: NamedFile = Field(description=_CERTIFICATE)
    key: NamedFile = Field(description=_KEY)
    client_ca: OptionalFile = Field(default=None, description=_CLIENT_CA)
