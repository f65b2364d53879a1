"""The addresses of clients: the host, one text for one address, and the network that counts as one client."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

__all__ = ["host_of", "is_within", "network_of", "same_address"]

#: The hexadecimal digits of an IPv6 address that stand for one network of /64: a client has all of its addresses.
_NETWORK_DIGITS: Final = 16


def host_of(remote_address: str) -> str:
    """The host of ``HOST:PORT`` without brackets; text without a port (a path, an IPv6 address alone) as it is."""
    host, _, port = remote_address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or (":" in host and not host.startswith("[")):
        return remote_address
    return host.removeprefix("[").removesuffix("]")


def same_address(host: str) -> str:
    """One text for one address: an IPv4 address mapped into IPv6 is the IPv4 address, and a zone does not count."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def is_within(host: str, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Whether an address is in one of some networks; other text, such as the path of a socket, is in none."""
    try:
        address = ip_address(same_address(host))
    except ValueError:
        return False
    return any(address in network for network in networks)


def network_of(host: str) -> str:
    """One text for all addresses that one client may have: a network of /64 in IPv6."""
    address = same_address(host)
    if ":" not in address:
        return address
    try:
        return IPv6Address(address).exploded.replace(":", "")[:_NETWORK_DIGITS]
    except ValueError:
        return address
