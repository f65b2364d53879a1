"""The addresses in a service URL: ``pulsar://host:port``, or several hosts of one cluster with commas between.

``pulsar+ssl://`` is with TLS. Clients have ``http://`` and ``https://`` too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

__all__ = [
    "DEFAULT_PORT",
    "DEFAULT_TLS_PORT",
    "HTTP_SCHEMES",
    "PULSAR_SCHEMES",
    "Address",
    "is_tls",
    "service_addresses",
    "shown_address",
]

#: Host and port.
Address: TypeAlias = tuple[str, int]

DEFAULT_PORT: Final = 6650
DEFAULT_TLS_PORT: Final = 6651

#: Schemes with their default ports.
PULSAR_SCHEMES: Final = MappingProxyType({"pulsar": DEFAULT_PORT, "pulsar+ssl": DEFAULT_TLS_PORT})
HTTP_SCHEMES: Final = MappingProxyType({"http": 80, "https": 443})

_NO_PATH: Final = ", for a service URL has no path"
_ADDRESS: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?"
)


def service_addresses(url: str, schemes: Mapping[str, int] = PULSAR_SCHEMES) -> tuple[Address, ...]:
    """Hosts and ports in the order in which they are tried; :exc:`ValueError` says what is wrong with the URL.

    ``schemes`` are the allowed ones, with their default ports.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in schemes:
        expected = " or ".join(f"{each}://host:port" for each in schemes)
        raise ValueError(f"Invalid service URL{_shown(url)}: expected {expected}")
    if "@" in rest:
        raise ValueError(f"Invalid service URL of {scheme}: a user and a password are not given in a URL")
    return tuple(_address(url, part, schemes[scheme]) for part in rest.removesuffix("/").split(","))


def shown_address(address: Address) -> str:
    """``HOST:PORT``, with brackets around an IPv6 host."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_tls(url: str) -> bool:
    """Whether a service URL is for TLS."""
    return url.startswith(("pulsar+ssl://", "https://"))


def _address(url: str, part: str, default_port: int) -> Address:
    match = _ADDRESS.fullmatch(part)
    if match is None:
        raise ValueError(
            f"Invalid service URL {url!r}: {part!r} is no host:port{_NO_PATH if '/' in part else ''}"
        )
    port = int(match["port"] or default_port)
    if not 0 < port < 65_536:
        raise ValueError(f"Invalid service URL {url!r}: no port {port}")
    return match["ipv6"] or match["host"], port


def _shown(url: str) -> str:
    """The URL for a message, or nothing if it may have a password."""
    return "" if "@" in url else f" {url!r}"
