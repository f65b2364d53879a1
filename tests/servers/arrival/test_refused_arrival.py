from __future__ import annotations

from broker_core.servers.arrival.refused_arrival import REASONS, RefusedArrival


def test_a_refusal_has_a_reason_for_metrics_and_a_text_for_the_log() -> None:
    refused = RefusedArrival("not_tls", "what the client sends is not TLS")
    assert refused.reason in REASONS
    assert str(refused) == "what the client sends is not TLS"
    assert not refused.is_attempt
    assert RefusedArrival("certificate", "", is_attempt=True).is_attempt
