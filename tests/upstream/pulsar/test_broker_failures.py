"""Failures of brokers: whose they are, and the code that clients get."""

from __future__ import annotations

import pytest

from broker_core.client import ConnectionLost, HandshakeRefused, ServerRefused
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.upstream.pulsar.broker_failures import broker_failures


@pytest.mark.parametrize(
    ("error", "cause", "text"),
    [
        (TimeoutError(), Cause.UPSTREAM, "did not answer the listing in time"),
        (ConnectionLost("gone"), Cause.UPSTREAM, "Cannot list at the brokers behind this server: gone"),
        (ServerRefused(ServerError.AuthorizationError, "no"), Cause.DENIED, "no"),
        (ServerRefused(ServerError.MetadataError, "odd"), Cause.UPSTREAM, "odd"),
        (HandshakeRefused(ServerError.AuthenticationError, "who"), Cause.UPSTREAM, "refused the connection"),
    ],
)
async def test_each_failure_is_one_of_the_listing(error: Exception, cause: Cause, text: str) -> None:
    cluster = UpstreamCluster(UpstreamOptions(UpstreamSettings(service_url="pulsar://127.0.0.1:1")))
    with pytest.raises(ListingFailed, match=text) as failed, broker_failures(cluster.listings):
        raise error
    assert failed.value.cause is cause


async def test_a_refusal_of_the_client_is_a_denial() -> None:
    settings = UpstreamSettings(service_url="pulsar://127.0.0.1:1", forward="client")
    cluster = UpstreamCluster(UpstreamOptions(settings))
    with pytest.raises(ListingFailed) as failed, broker_failures(cluster.listings):
        raise HandshakeRefused(ServerError.AuthenticationError, "who")
    assert failed.value.cause is Cause.DENIED
