"""Free TCP ports of the loopback interface, for servers that cannot take port 0 themselves, and for those that are
away.
"""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Final

__all__ = ["free_port", "free_ports", "host_and_port"]

_LOWEST: Final = 10_000


def _end() -> int:
    """Where the ports begin that the system gives to clients, and to servers at port 0: as here if it does not say."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 32_768
    return first if first > 2 * _LOWEST else 1 << 16


def free_ports(count: int) -> list[int]:
    """``count`` different ports that nobody listens on right now, and that the system gives to nobody meanwhile."""
    found: set[int] = set()
    end = _end()
    while len(found) < count:
        port = _LOWEST + secrets.randbelow(end - _LOWEST)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return list(found)


def free_port() -> int:
    """One port that nobody listens on right now."""
    return free_ports(1)[0]


def host_and_port(address: str) -> tuple[str, int]:
    """The two halves of ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    return host, int(port)
