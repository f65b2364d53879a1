"""Reading the preamble of a proxy in front, which gives the address of a client."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from broker_core.quantities import ListenAddress
from broker_core.servers.arrival.haproxy_preamble import LARGEST, HaproxyPreamble, PreambleError
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.socket_waits import peeked

__all__ = ["client_of_proxy"]

#: Seconds in which a proxy has to send its preamble: it sends it with the first packet.
_DEADLINE: Final = 5.0


async def client_of_proxy(sock: socket.socket) -> ListenAddress | None:
    """Read the preamble, and no byte after it: the address of the client, ``None`` if that is the proxy itself.

    Raises :exc:`RefusedArrival`.
    """
    preamble = HaproxyPreamble()
    try:
        async with asyncio.timeout(_DEADLINE):
            while not preamble.is_complete:
                seen = await peeked(sock, LARGEST, "the preamble")
                sock.recv(preamble.feed(seen))  # bytes after it stay for the next reader of the socket
    except TimeoutError:
        raise RefusedArrival("preamble", "the preamble of a proxy did not come in time") from None
    except PreambleError as error:
        raise RefusedArrival("preamble", f"the preamble of a proxy is required: {error}") from None
    except OSError as error:
        raise RefusedArrival("closed", f"closed before the preamble: {error}") from None
    return preamble.source
