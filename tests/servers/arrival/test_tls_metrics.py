from __future__ import annotations

from broker_core.metrics.metrics import Metrics
from broker_core.servers.arrival import ServerCertificate, TlsMetrics
from tests.support.certificates import Authority


def test_each_listener_is_shown(authority: Authority) -> None:
    metrics = Metrics()
    shown = TlsMetrics(metrics, ("pulsar", "http"))
    issued = authority.issue("metrics")
    certificate = ServerCertificate("http.tls", issued.certificate, issued.key)
    shown.show("http", certificate, lambda: 7)
    shown.handshake("pulsar", "done")

    def sample(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(f"broker_core_tls_{name}", labels)

    assert sample("handshakes_total", listener="pulsar", outcome="done") == 1
    assert sample("handshakes_total", listener="http", outcome="certificate") == 0
    assert sample("certificate_expires_seconds", listener="http") == certificate.expires_at
    assert sample("certificate_expires_seconds", listener="pulsar") is None
    assert sample("handshakes_under_way", listener="http") == 7
