"""The host in the address of a client."""

from __future__ import annotations

__all__ = ["host_of"]


def host_of(remote_address: str) -> str:
    """The host of ``HOST:PORT`` without brackets; what has no port (a path, an IPv6 address alone) as it is."""
    host, _, port = remote_address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or (":" in host and not host.startswith("[")):
        return remote_address
    return host.removeprefix("[").removesuffix("]")
