from __future__ import annotations

from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions, gateway_mark


def test_a_relayed_lookup_ends_before_holding_it_helps_no_client() -> None:
    options = UpstreamOptions(UpstreamSettings(service_url="pulsar://localhost:6650"))
    assert options.lookup_timeout < 20
    assert options.connection_wait < options.lookup_timeout
    assert options.listing_timeout < 28, "the time budget of a listing"


def test_gateways_of_one_cluster_have_one_mark() -> None:
    marks = {gateway_mark(url) for url in ("pulsar://a:6650", "pulsar://a:6650", "pulsar://b:6650")}
    assert len(marks) == 2
    assert all(len(mark) == 16 for mark in marks)
