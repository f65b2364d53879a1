"""Addresses that are advertised to clients: those that a client can connect to."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from broker_core.settings.advertised_address import Advertised, is_wildcard

ADAPTER = TypeAdapter(Advertised)


@pytest.mark.parametrize("text", ["", "broker.example:6650", "[2001:db8::1]:6650"])
def test_an_address_of_a_host_is_taken(text: str) -> None:
    assert ADAPTER.validate_python(text) == text


@pytest.mark.parametrize("text", ["broker.example", "broker.example:0", "0.0.0.0:6650", "[::]:6650"])
def test_one_that_no_client_can_connect_to_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(text)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("0.0.0.0", True), ("::", True), ("0", True), ("0:0::0", True), ("127.0.0.1", False), ("a", False)],
)
def test_wildcards_are_known_in_all_spellings(host: str, expected: bool) -> None:
    assert is_wildcard(host) is expected
