"""The host in the address of a client."""

from __future__ import annotations

import pytest

from broker_core.access.remote_address import host_of


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
