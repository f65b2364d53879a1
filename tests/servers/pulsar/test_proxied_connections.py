"""Clients behind TCP proxies that tell their addresses, plain and over TLS."""

from __future__ import annotations

import ssl
from ipaddress import ip_network
from pathlib import Path

from broker_core import hookimpl
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.arrival import ServerCertificate
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings
from broker_core.wire.pulsar import commands
from tests.support.certificates import Authority
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient

LINE = b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\r\n"
OTHER = b"PROXY TCP6 2001:db8::7 2001:db8::11 56324 443\r\n"
LOCAL = b"PROXY UNKNOWN\r\n"
HERE = (ip_network("127.0.0.0/8"),)


class Addresses:
    """Notes the address of each asker."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> None:
        self.seen.append(request.asker.remote_address)


def options(**limits: int) -> PulsarOptions:
    return PulsarOptions(PulsarSettings(haproxy_from=HERE), LimitsSettings(**limits))


async def proxied(address: tuple[str, int], preamble: bytes, *more: bytes) -> RawClient:
    client = await RawClient.open(address, handshake=False)
    await client.send(preamble)
    for piece in more:
        await client.send(piece)
    return client


async def test_the_address_of_the_client_counts() -> None:
    plugin = Addresses()
    async with serving(MemoryLister(), {"addresses": plugin}, options=options()) as s:
        for preamble in (LINE, OTHER, LOCAL):
            client = s.closed_at_end(await proxied(s.address, preamble, commands.connect("Pulsar-Java")))
            await client.receive()
            await client.ask()
        assert plugin.seen[:2] == ["192.0.2.7:56324", "[2001:db8::7]:56324"]
        assert plugin.seen[2].startswith("127.0.0.1:")
        assert s.sample("haproxy_preambles_total", outcome="client") == 2
        assert s.sample("haproxy_preambles_total", outcome="own") == 1


async def test_limits_are_by_the_address_of_the_client() -> None:
    async with serving(options=options(connections_per_address=1)) as s:
        first = s.closed_at_end(await proxied(s.address, LINE, commands.connect("Pulsar-Java")))
        await first.receive()
        other = s.closed_at_end(await proxied(s.address, OTHER, commands.connect("Pulsar-Java")))
        await other.receive()
        second = s.closed_at_end(await proxied(s.address, LINE, commands.connect("Pulsar-Java")))
        assert "connections of one address" in (await second.receive()).error.message


async def test_the_preamble_comes_before_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    certificate = ServerCertificate("pulsar.tls", issued.certificate, issued.key)
    context = ssl.create_default_context(cafile=authority.ca)
    plugin = Addresses()
    async with serving(MemoryLister(), {"addresses": plugin}, options=options(), tls=certificate) as s:
        client = await s.tls_client(context, before=LINE)
        await client.ask()
        assert plugin.seen == ["192.0.2.7:56324"]
