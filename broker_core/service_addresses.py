"""The addresses in a service URL: ``pulsar://host:port``, or several hosts of one cluster with commas between;
``pulsar+ssl://`` with TLS.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DEFAULT_PORT", "DEFAULT_TLS_PORT", "is_tls", "service_addresses"]

DEFAULT_PORT: Final = 6650
DEFAULT_TLS_PORT: Final = 6651

_PORTS: Final = {"pulsar": DEFAULT_PORT, "pulsar+ssl": DEFAULT_TLS_PORT}

_ADDRESS: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?"
)


def service_addresses(url: str) -> tuple[tuple[str, int], ...]:
    """Hosts and ports in the order in which they are tried; :exc:`ValueError` says what is wrong with the URL."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _PORTS:
        raise ValueError(
            f"Invalid service URL {url!r}: expected pulsar://host:port or pulsar+ssl://host:port"
        )
    return tuple(_address(url, part, _PORTS[scheme]) for part in rest.removesuffix("/").split(","))


def is_tls(url: str) -> bool:
    """Whether a service URL is one of TLS."""
    return url.startswith("pulsar+ssl://")


def _address(url: str, part: str, default_port: int) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(part)
    if match is None:
        raise ValueError(f"Invalid service URL {url!r}: {part!r} is no host:port")
    port = int(match["port"] or default_port)
    if not 0 < port < 65_536:
        raise ValueError(f"Invalid service URL {url!r}: no port {port}")
    return match["ipv6"] or match["host"], port
