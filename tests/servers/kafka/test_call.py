from __future__ import annotations

from broker_core.servers.kafka.call import CloseClient


def test_a_client_is_closed_for_a_reason_of_the_metrics() -> None:
    assert CloseClient("why").reason == "unanswered"
