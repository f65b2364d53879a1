"""``broker_core.testing.make_request``."""

from __future__ import annotations

import pytest

from broker_core import Page
from broker_core.errors import InvalidName, InvalidPattern
from broker_core.names import Mode
from broker_core.testing import listing_request


async def test_a_request_has_what_it_is_given() -> None:
    request = listing_request(
        "acme/prod",
        pattern="persistent://acme/prod/orders-.*",
        mode=Mode.ALL,
        properties={"team": "eu"},
        topics_hash="2267822e",
        role="auditor",
        address="203.0.113.7",
        page=Page(None, 10),
        wants={"partitions"},
    )
    assert str(request.namespace) == "acme/prod"
    assert request.mode is Mode.ALL
    assert request.topics_pattern == "persistent://acme/prod/orders-.*"
    assert request.pattern is not None
    assert request.pattern.matches("persistent://acme/prod/orders-1")
    assert request.properties == {"team": "eu"}
    assert request.topics_hash == "2267822e"
    assert request.asker.role == "auditor"
    assert request.asker.remote_address == "203.0.113.7:0"
    assert request.page == Page(None, 10)
    assert request.wants == {"partitions"}
    await request.reserve(10**9)


def test_nothing_needs_to_be_given() -> None:
    request = listing_request()
    assert str(request.namespace) == "public/default"
    assert request.pattern is None
    assert request.properties == {}


def test_the_properties_of_a_request_cannot_be_changed() -> None:
    properties = {"team": "eu"}
    request = listing_request(properties=properties)
    properties["team"] = "us"
    assert request.properties == {"team": "eu"}
    with pytest.raises(TypeError):
        request.properties["team"] = "us"  # type: ignore[index]


def test_what_a_server_would_refuse_is_refused() -> None:
    with pytest.raises(InvalidName):
        listing_request("public")
    with pytest.raises(InvalidPattern):
        listing_request(pattern="x)|(?:.*")
