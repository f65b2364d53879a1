"""The addresses that will be listened on: free, and how far they can be reached from."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker_core.cli.startup_checks.running_server import PATIENCE, is_live
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.quantities import ListenAddress
    from broker_core.settings import Settings

__all__ = ["listen_checks", "taken_addresses", "why_not_free"]

_IN_USE: Final = "is in use: another process listens there"


def listen_checks(settings: Settings, *, by_server: bool = False) -> Iterator[Check]:
    """The addresses that will be listened on: free, and how far they can be reached from.

    ``by_server``: the running server itself asks, which has them.
    """
    ours: dict[str, bool | None] = {}
    for name, address, problem in _tried(settings):
        if problem == _IN_USE:
            ours[name] = _is_ours(name, settings, ours)
        found = ours.get(name, False)
        is_own = by_server and found is not False
        if found is None and not is_own:
            yield Check.warning(
                name,
                f"{address} is in use: by the broker-core of these settings, which then runs already, or by "
                "another process",
            )
        elif found and not is_own:
            yield Check.warning(
                name, f"{address} is in use by a broker-core that runs: another one cannot listen there"
            )
        elif problem is not None and not is_own:
            yield Check.error(name, f"{address} {problem}")
        elif not address.is_loopback and not (
            name.endswith(".tls.listen") and _authenticates(name, settings)
        ):
            risk = (
                "without TLS: whoever reads the network has the tokens and passwords"
                if _authenticates(name, settings)
                else "and there is no authentication"
            )
            yield Check.warning(
                name, f"{address} is reached from other machines, {risk}: see the docs, secure"
            )
        else:
            yield Check.ok(name, f"{address} is {'listened on by this server' if is_own else 'free'}")
        http = settings.http
        if (
            name.startswith("http.")
            and http is not None
            and settings.authentication.is_on
            and not http.protect
            and not address.is_loopback
        ):
            yield Check.warning(
                name, f"/metrics and health at {address} are open to all: http.protect asks for credentials"
            )


def taken_addresses(settings: Settings) -> Iterator[tuple[str, str]]:
    """The settings of addresses that a server cannot listen on, with the reasons."""
    for name, address, problem in _tried(settings):
        if problem is not None:
            yield name, f"{address} {problem}"


def _tried(settings: Settings) -> Iterator[tuple[str, ListenAddress, str | None]]:
    """Each address by its setting, and the reason if it cannot be listened on."""
    addresses: dict[str, ListenAddress] = {}
    for name, table in (("pulsar", settings.pulsar), ("http", settings.http), ("kafka", settings.kafka)):
        if table is not None:
            addresses[f"{name}.listen"] = table.listen
            if table.tls is not None:
                addresses[f"{name}.tls.listen"] = table.tls.listen
    taken: dict[ListenAddress, str] = {}
    for name, address in addresses.items():
        yield (
            name,
            address,
            f"is that of {taken[address]} too" if address in taken else why_not_free(address),
        )
        if address.port:
            taken[address] = name


def _authenticates(name: str, settings: Settings) -> bool:
    """Whether clients of an address have to authenticate: those of Kafka may by SASL alone."""
    kafka = settings.kafka
    by_sasl = name.startswith("kafka.") and kafka is not None and bool(kafka.sasl.mechanisms)
    return by_sasl or settings.authentication.is_on


def _is_ours(name: str, settings: Settings, found: dict[str, bool | None]) -> bool | None:
    """Whether a broker-core has this address; if it has the plain address, it has the one with TLS as well.

    A server with authentication counts and logs every client without credentials, such as this one. So it is only
    contacted at an address that needs none; ``None`` if there is no such address.
    """
    if name.endswith(".tls.listen"):
        return found.get(name.replace(".tls.", "."), False)
    http, authenticates = settings.http, settings.authentication.is_on
    pages = http is not None and not (http.protect and authenticates)
    if name == "pulsar.listen" and not authenticates:
        return _speaks_pulsar(settings.pulsar.listen)
    if http is not None and pages and (name == "http.listen" or http.listen.port):
        return is_live(f"http://{http.listen.from_here}")
    if settings.admin.socket is not None:
        return is_live(f"unix:{settings.admin.socket.absolute()}")
    return None


def why_not_free(address: ListenAddress) -> str | None:
    """The reason why an address cannot be listened on, ``None`` if it can."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        return f"cannot be listened on: {error.strerror or error}"
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
            if family == socket.AF_INET6:
                tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                tried.bind(place)
                tried.listen(1)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return _IN_USE
                return f"cannot be listened on: {os.strerror(error.errno or 0).lower()}"
    return None


def _speaks_pulsar(address: ListenAddress) -> bool:
    """Whether a broker-core answers a client at this address."""
    from broker_core.client import ClientError, HandshakeRefused, LookupSession
    from broker_core.errors import ServerError

    async def version_there() -> str:
        async with LookupSession(
            f"pulsar://{address.from_here}", connect_timeout=PATIENCE, operation_timeout=PATIENCE
        ) as client:
            return str(client.server.server_version)

    try:
        server: str = asyncio.run(version_there())
    except HandshakeRefused as refused:
        return refused.code is ServerError.AuthenticationError  # it does not say more to strangers
    except (ClientError, OSError, ValueError):
        return False
    return server.startswith("broker-core")
