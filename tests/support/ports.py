"""Free TCP ports of the loopback interface, for servers that cannot take port 0 themselves, and for those that are
away.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["free_port", "free_ports", "host_and_port", "ports_in_a_row"]

_LOWEST: Final = 10_000
_given: set[int] = set()


def _end() -> int:
    """Where the ports begin that the system gives to clients, and to servers at port 0: as here if it does not say."""
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        first = 32_768
    return first if first > 2 * _LOWEST else 1 << 16


@cache
def _claims(process: int) -> int:
    """A file with one byte for each port, of which processes lock those of their ports until they end."""
    path = Path(tempfile.gettempdir(), f"broker-core-test-ports-{os.getuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_free(port: int) -> bool:
    """Whether nobody listens on a port, and no other test has been given it, in whatever process: its server may not
    have begun to listen, or is to be away.
    """
    if port in _given:
        return False
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
            fcntl.lockf(_claims(os.getpid()), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
    _given.add(port)
    return True


def ports_in_a_row(count: int) -> range:
    """``count`` ports, one after the other, that nobody has right now, and that the system and this function give to
    nobody while this process lives.
    """
    while True:
        first = _LOWEST + secrets.randbelow(_end() - _LOWEST - count)
        ports = range(first, first + count)
        if all(map(_is_free, ports)):
            return ports


def free_ports(count: int) -> list[int]:
    """``count`` different ports as those of :func:`ports_in_a_row`, anywhere."""
    return [free_port() for _ in range(count)]


def free_port() -> int:
    """One port that nobody has."""
    return ports_in_a_row(1)[0]


def host_and_port(address: str) -> tuple[str, int]:
    """The two halves of ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    return host, int(port)
