"""The proxies that must give the address of a client, and are trusted with it: ``[pulsar] haproxy_from``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Final

from broker_core.access import is_within
from broker_core.quantities import ListenAddress
from broker_core.servers.arrival.haproxy_preamble import LARGEST, HaproxyPreamble, PreambleError
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.socket_waits import readable

__all__ = ["TrustedProxies"]

#: Seconds in which a proxy has to send its preamble: it sends it with the first packet.
_DEADLINE: Final = 5.0


class TrustedProxies:
    """The networks of trusted proxies."""

    def __init__(self, networks: Iterable[IPv4Network | IPv6Network]) -> None:
        self._networks = tuple(networks)

    def has(self, host: str) -> bool:
        """Whether the address is that of a proxy."""
        return bool(self._networks) and is_within(host, self._networks)

    async def client(self, sock: socket.socket) -> ListenAddress | None:
        """Read the preamble, and no byte after it: the address of the client, ``None`` if that is the proxy itself.

        Raises :exc:`RefusedArrival`.
        """
        try:
            async with asyncio.timeout(_DEADLINE):
                return await _read(sock)
        except TimeoutError:
            raise RefusedArrival("preamble", "the preamble of a proxy did not come in time") from None
        except PreambleError as error:
            raise RefusedArrival("preamble", f"the preamble of a proxy is required: {error}") from None
        except OSError as error:
            raise RefusedArrival("closed", f"closed before the preamble: {error}") from None


async def _read(sock: socket.socket) -> ListenAddress | None:
    preamble = HaproxyPreamble()
    while not preamble.is_complete:
        try:
            seen = sock.recv(LARGEST, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            await readable(sock)
            continue
        if not seen:
            raise RefusedArrival("closed", "closed before the preamble")
        sock.recv(preamble.feed(seen))  # bytes after it stay for the next reader of the socket
    return preamble.source
