"""The asker is immutable, and its host is its address without the port."""

from __future__ import annotations

import dataclasses

import pytest

from broker_core.access.asker import Asker


def test_who_asks_does_not_change() -> None:
    asker = Asker(
        role="alice", remote_address="client:1", client_version="Pulsar-Java-v4.2.4", transport="http"
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        asker.role = "root"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("127.0.0.1:54321", "127.0.0.1"),
        ("[::1]:54321", "::1"),
        ("[fe80::1%eth0]:1", "fe80::1%eth0"),
        ("::1", "::1"),
        ("2001:db8::1:6650", "2001:db8::1:6650"),
        ("proxy.example:1", "proxy.example"),
        ("/run/a.sock", "/run/a.sock"),
        ("somewhere", "somewhere"),
        ("", ""),
    ],
)
def test_the_host_is_the_same_with_each_connection(address: str, host: str) -> None:
    assert Asker(remote_address=address).host == host
