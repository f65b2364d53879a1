"""The host in the address of a client, and what counts as one client."""

from __future__ import annotations

import pytest

from broker_core.access.remote_address import host_of, same_address


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
