"""The addresses in a service URL: ``pulsar://host:port``, or several hosts of one cluster with commas between."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["DEFAULT_PORT", "service_addresses"]

DEFAULT_PORT: Final = 6650

_ADDRESS: Final = re.compile(
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\[\]:/?#@\s]+))(?::(?P<port>[0-9]{1,5}))?"
)


def service_addresses(url: str) -> tuple[tuple[str, int], ...]:
    """Hosts and ports in the order in which they are tried; :exc:`ValueError` says what is wrong with the URL."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "pulsar+ssl":
        raise ValueError(f"Invalid service URL {url!r}: TLS is not supported, use pulsar://host:port")
    if not separator or scheme != "pulsar":
        raise ValueError(f"Invalid service URL {url!r}: expected pulsar://host:port")
    return tuple(_address(url, part) for part in rest.removesuffix("/").split(","))


def _address(url: str, part: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(part)
    if match is None:
        raise ValueError(f"Invalid service URL {url!r}: {part!r} is no host:port")
    port = int(match["port"] or DEFAULT_PORT)
    if not 0 < port < 65_536:
        raise ValueError(f"Invalid service URL {url!r}: no port {port}")
    return match["ipv6"] or match["host"], port
