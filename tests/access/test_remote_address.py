"""The host in the address of a client, and what counts as one client."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from broker_core.access.asker import host_of, is_within, same_address


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("192.0.2.1", "192.0.2.1"),
        ("/run/broker.sock", "/run/broker.sock"),
        ("host:", "host:"),
        ("host:²", "host:²"),
        ("", ""),
    ],
)
def test_the_host(address: str, host: str) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::ffff:7f00:1", "127.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("2001:DB8:0:0::1", "2001:db8::1"),
        ("a:socket", "a:socket"),
        ("", ""),
    ],
)
def test_one_text_for_one_address(host: str, address: str) -> None:
    assert same_address(host) == address


@pytest.mark.parametrize(
    ("host", "networks", "within"),
    [
        ("192.0.2.7", ["192.0.2.0/24"], True),
        ("192.0.3.7", ["192.0.2.0/24", "10.0.0.0/8"], False),
        ("::ffff:10.1.2.3", ["192.0.2.0/24", "10.0.0.0/8"], True),
        ("fe80::1%eth0", ["fe80::/10"], True),
        ("192.0.2.7", ["fe80::/10"], False),
        ("192.0.2.7", [], False),
        ("/run/broker-core.sock", ["0.0.0.0/0", "::/0"], False),
        ("", ["0.0.0.0/0"], False),
    ],
)
def test_an_address_is_within_networks(host: str, networks: list[str], within: bool) -> None:
    assert is_within(host, map(ip_network, networks)) is within
