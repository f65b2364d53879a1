"""The address that a server advertises to clients; wildcard addresses and port 0 are refused."""

from __future__ import annotations

import ipaddress
import socket
from typing import Annotated

from pydantic import AfterValidator

from broker_core.quantities import ListenAddress

__all__ = ["Advertised", "is_wildcard"]


def is_wildcard(host: str) -> bool:
    """Whether a host is all addresses of the machine, in any spelling: ``::``, ``0:0::0``, ``0``."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        pass
    try:
        return socket.inet_aton(host) == bytes(4)
    except OSError:
        return False


def _address(text: str) -> str:
    if text and not ListenAddress.parse(text).port:
        raise ValueError(f"{text!r} has port 0, which no client can connect to")
    if text and is_wildcard(ListenAddress.parse(text).host):
        raise ValueError(f"{text!r} is a wildcard address, which no client can connect to")
    return text


#: ``HOST:PORT``, or nothing.
Advertised = Annotated[str, AfterValidator(_address)]
