from __future__ import annotations

from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar.options import UpstreamOptions


def test_a_relayed_lookup_ends_before_holding_it_helps_no_client() -> None:
    options = UpstreamOptions(UpstreamSettings(service_url="pulsar://localhost:6650"))
    assert options.lookup_timeout < 20
    assert options.connection_wait < options.lookup_timeout
    assert options.listing_timeout < 28, "the time budget of a listing"
