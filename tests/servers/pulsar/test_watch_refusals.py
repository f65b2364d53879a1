"""Which clients poll after a refusal, and which never ask again."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.metrics.metrics import Metrics
from broker_core.servers.pulsar.watch_refusals import WatchRefusals, cannot_poll, watch_not_allowed


@pytest.mark.parametrize(
    ("version", "stuck"),
    [
        ("Pulsar-Java-v3.0.7", True),
        ("Pulsar-Java-v3.0.11", False),
        ("Pulsar-Java-v3.1.0", True),
        ("Pulsar-Java-v3.3.5", True),
        ("Pulsar-Java-v3.3.6-app", False),
        ("Pulsar-Java-v4.0.0", True),
        ("Pulsar-Java-v4.0.3", True),
        ("Pulsar-Java-v4.0.8", False),
        ("Pulsar-Java-v4.2.4", False),
        ("Pulsar-Java-v2.11.1", True),
        ("Pulsar-CPP-v4.2.0", False),
        ("Pulsar-Java-", False),
        ("", False),
    ],
)
def test_versions_that_cannot_poll(version: str, stuck: bool) -> None:
    assert cannot_poll(version) is stuck


def test_only_what_is_not_allowed_is_final() -> None:
    metrics = Metrics()
    refusals = WatchRefusals(metrics)
    old = Asker(client_version="Pulsar-Java-v4.0.0")
    refusals.report(old, "a/b", watch_not_allowed("why", "properties"))
    refusals.report(old, "a/b", ListingFailed("later", cause=Cause.PERMITS, reason="heap"))

    def count(reason: str, client: str) -> float | None:
        return metrics.registry.get_sample_value(
            "broker_core_watches_refused_total", {"reason": reason, "client": client}
        )

    assert (count("properties", "stuck"), count("properties", "polls")) == (1, 0)
    assert count("heap", "polls") == 1
    assert watch_not_allowed("why", "x").code is ServerError.NotAllowedError
