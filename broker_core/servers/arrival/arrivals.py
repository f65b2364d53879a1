"""The way of all connections of one server from their acceptance to their protocol.

A connection goes in steps: the preamble of a proxy that is in front, a place, the TLS handshake.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Final, Protocol, TypeAlias

import structlog

from broker_core.access import Peer, is_within
from broker_core.metrics import Metrics
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import Acceptor, ConnectionLimits, ConnectionPlace
from broker_core.servers.arrival.haproxy_preamble import LARGEST, HaproxyPreamble, PreambleError
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.socket_waits import peeked
from broker_core.servers.arrival.tls_entrance import TlsEntrance, common_name
from broker_core.servers.arrival.tls_transport import TlsTransport

__all__ = ["Arrivals", "MakeProtocol", "Refusals", "client_of_proxy"]

_log = structlog.get_logger(__name__)

#: Seconds in which a proxy has to send its preamble: it sends it with the first packet.
_PREAMBLE_DEADLINE: Final = 5.0
#: Connections that are accepted in one turn of the event loop.
_AT_ONCE: Final = 16
#: The address of a client at a unix socket.
_UNIX: Final = ListenAddress("", 0)

#: Makes the protocol of a client that has a place. The protocol gives it back when the connection is over.
MakeProtocol: TypeAlias = Callable[[Peer, ConnectionPlace], asyncio.Protocol]


class Refusals(Protocol):
    """Refuses clients for which there is no place; ``reason`` is a label of the metrics."""

    def begin(self, reason: str) -> asyncio.Protocol | None:
        """The protocol of a refused connection; ``None`` if no more can be refused that way."""

    def forget(self, refusal: asyncio.Protocol) -> None:
        """Forget a protocol of :meth:`begin` that was never connected: the connection was over before."""

    def at_once(self, sock: socket.socket, reason: str) -> None:
        """Refuse the client of a socket without waiting, and close it."""

    async def close(self) -> None:
        """Close all refused connections."""


class Arrivals:
    """Arriving connections of one protocol: their places, and preambles of proxies.

    ``transport`` is the protocol's name. Proxies in the networks ``haproxy_from`` must give the addresses of their
    clients, and are trusted with it. ``file_ceiling`` is the descriptor from which on clients get no place
    (``None``: nothing bounds them). Without ``refusals``, a client that gets no place is just closed. ``at_once`` is
    how many connections are accepted in one turn of the event loop.
    """

    def __init__(
        self,
        transport: str,
        places: ConnectionLimits,
        metrics: Metrics,
        *,
        haproxy_from: Iterable[IPv4Network | IPv6Network] = (),
        file_ceiling: int | None = None,
        refusals: Refusals | None = None,
        at_once: int = _AT_ONCE,
    ) -> None:
        self.places = places
        self._transport = transport
        self._metrics = metrics
        self._proxies = tuple(haproxy_from)
        self._file_ceiling = file_ceiling
        self._refusals = refusals
        self._at_once = at_once
        self._acceptors: dict[tuple[str, int], Acceptor] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()  # for clients that have yet to do something

    async def listen(
        self, host: str, port: int, protocol: MakeProtocol, tls: TlsEntrance | None = None
    ) -> tuple[str, int]:
        """Accept connections on an address; port 0 is a free one. Returns the address.

        Raises :exc:`OSError` if it is not free.
        """
        acceptor = self._acceptor(protocol, tls)
        address = await acceptor.listen(host, port)
        self._acceptors[address] = acceptor
        return address

    def listen_on(self, sock: socket.socket, protocol: MakeProtocol) -> None:
        """Accept connections on a unix socket that listens already and does not block; :meth:`close` closes it."""
        acceptor = self._acceptors["", sock.fileno()] = self._acceptor(protocol, None)
        acceptor.listen_on(sock)

    def _acceptor(self, protocol: MakeProtocol, tls: TlsEntrance | None) -> Acceptor:
        accepted = partial(self._accepted, protocol, tls)
        return Acceptor(accepted, at_once=self._at_once, on_pause=self._metrics.accept_paused)

    def end(self, address: tuple[str, int]) -> None:
        """Accept no more on an address of :meth:`listen`; clients that are connected stay."""
        acceptor = self._acceptors.pop(address, None)
        if acceptor is not None:
            acceptor.close()

    @property
    def sockets(self) -> list[socket.socket]:
        """The sockets that are listened on; none after :meth:`close`."""
        return [sock for acceptor in self._acceptors.values() for sock in acceptor.sockets]

    @property
    def waiting(self) -> int:
        """The number of connections that wait for a proxy's preamble or for a TLS handshake."""
        return len(self._waiting)

    async def close(self) -> None:
        """Accept no more. Connections that clients keep waiting are closed, the others get to their protocol."""
        for acceptor in self._acceptors.values():
            acceptor.close()
        for task in self._waiting:
            task.cancel()
        if under_way := self._opening | self._waiting:
            await asyncio.wait(under_way)
        if self._refusals is not None:
            await self._refusals.close()

    def _accepted(
        self, protocol: MakeProtocol, tls: TlsEntrance | None, sock: socket.socket, peer: Any
    ) -> None:
        """Begin with an accepted connection; that of a proxy begins with the address of its client."""
        address = ListenAddress(str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else _UNIX
        is_proxy = bool(self._proxies) and is_within(address.host, self._proxies)
        if is_proxy and not self._is_near_file_limit(sock):
            _start(self._waiting, self._read_preamble(protocol, tls, sock, address))
        else:
            self._admit(protocol, tls, sock, address)

    async def _read_preamble(
        self, protocol: MakeProtocol, tls: TlsEntrance | None, sock: socket.socket, proxy: ListenAddress
    ) -> None:
        count = self._metrics.haproxy_preamble
        try:
            client = await client_of_proxy(sock)
        except RefusedArrival as refused:
            sock.close()
            count("refused")
            _log.info("connection of a proxy refused", peer=str(proxy), error=str(refused))
            return
        except BaseException:
            sock.close()
            raise
        count("own" if client is None else "client")
        self._admit(protocol, tls, sock, client or proxy)

    def _is_near_file_limit(self, sock: socket.socket) -> bool:
        return self._file_ceiling is not None and sock.fileno() >= self._file_ceiling

    def _admit(
        self, protocol: MakeProtocol, tls: TlsEntrance | None, sock: socket.socket, address: ListenAddress
    ) -> None:
        """Give a client a place, or refuse it."""
        taken = "files" if self._is_near_file_limit(sock) else self.places.take(address.host)
        if isinstance(taken, ConnectionPlace):
            opening = self._open(tls, sock, address, lambda peer: protocol(peer, taken), taken.give_back)
            if tls is not None:  # idle until its handshake is done
                loop = asyncio.get_running_loop()
                began = loop.time()
                taken.idle, taken.end = (lambda: loop.time() - began), opening.cancel
            return
        reason = taken
        self._metrics.connection_refused(reason)
        _log.warning("connection refused", peer=address.host, reason=reason, connections=self.places.taken)
        refusals = self._refusals
        if refusals is None:
            sock.close()
        elif (refusal := refusals.begin(reason)) is not None:
            self._open(tls, sock, address, lambda _: refusal, partial(refusals.forget, refusal))
        elif tls is None:
            refusals.at_once(sock, reason)
        else:
            sock.close()

    def _open(
        self,
        tls: TlsEntrance | None,
        sock: socket.socket,
        address: ListenAddress,
        protocol: Callable[[Peer], asyncio.Protocol],
        gone: Callable[[], None],
    ) -> asyncio.Task[None]:
        if tls is None:
            plain = partial(protocol, Peer("" if address is _UNIX else str(address), self._transport))
            return _start(self._opening, _connect(sock, plain, gone))
        return _start(self._waiting, self._secure(tls, sock, address, protocol, gone))

    async def _secure(
        self,
        tls: TlsEntrance,
        sock: socket.socket,
        address: ListenAddress,
        protocol: Callable[[Peer], asyncio.Protocol],
        gone: Callable[[], None],
    ) -> None:
        try:
            secured = await tls.enter(sock, address.host)
        except RefusedArrival as refused:
            gone()
            _log.info("TLS connection refused", peer=str(address), reason=refused.reason, error=str(refused))
        except BaseException:
            gone()
            raise
        else:
            peer = Peer(
                str(address),
                self._transport,
                True,
                common_name(secured),
                partial(tls.certificate.trusts, secured),
            )
            TlsTransport(secured, protocol(peer), (address.host, address.port))


async def client_of_proxy(sock: socket.socket) -> ListenAddress | None:
    """Read the preamble, and no byte after it: the address of the client, ``None`` if that is the proxy itself.

    Raises :exc:`RefusedArrival`.
    """
    preamble = HaproxyPreamble()
    try:
        async with asyncio.timeout(_PREAMBLE_DEADLINE):
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


async def _connect(
    sock: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(protocol, sock)
    except OSError as error:  # before the protocol has heard of it
        _log.warning("a connection could not be accepted", error=str(error))
        sock.close()
        gone()


def _start(tasks: set[asyncio.Task[None]], step: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.get_running_loop().create_task(step)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task
