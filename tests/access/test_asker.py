"""The asker is immutable, as are its question to a gate and the refusal, which are checked when they are made."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import broker_core
from broker_core.access.asker import ACTIONS, Access, Asker, Refused
from broker_core.errors.error_codes import Cause
from broker_core.names import NamespaceName


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


def test_an_access_and_a_refusal_do_not_change() -> None:
    access = Access("list", NamespaceName("acme", "orders"), None, Asker(role="alice"))
    assert access.action in ACTIONS
    for value, field in ((access, "action"), (Refused("no"), "message")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field, "other")
    assert (broker_core.Access, broker_core.Refused) == (Access, Refused)


def test_a_refusal_is_a_denial_unless_it_says_otherwise() -> None:
    assert Refused("no").cause is Cause.DENIED
    assert Refused("who?", cause=Cause.UNAUTHENTICATED).cause is Cause.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((None,), TypeError, "message must be a string, the text for the client, not NoneType"),
        (("",), ValueError, "message must say to the client what is refused"),
        (("no", "DENIED"), TypeError, "cause must be a broker_core.Cause, such as Cause.DENIED, not str"),
    ],
)
def test_what_cannot_be_told_is_refused_where_it_is_made(
    arguments: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        Refused(*arguments)
