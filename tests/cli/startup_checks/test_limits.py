from __future__ import annotations

from broker_core.cli.startup_checks.limits import limit_checks
from broker_core.settings import Settings
from tests.cli.startup_checks.findings import levels, settings, text


def test_limits_that_do_not_fit_together() -> None:
    assert levels(limit_checks(settings())) == {"limits": "ok"}
    found = list(
        limit_checks(
            settings(limits={"permit_timeout": "31s", "snapshots": 0}, pulsar={"write_timeout": "2m"})
        )
    )
    assert levels(found) == dict.fromkeys(
        ("limits.permit_timeout", "limits.snapshots", "pulsar.write_timeout"), "warning"
    )
    assert "30 s that clients wait" in text(found, "limits.permit_timeout")


def test_a_quota_that_lets_requests_wait_for_longer_than_clients_do() -> None:
    quotas = [
        {"name": name, "requests": 1, "max_wait": wait} for name, wait in (("near", "30s"), ("far", "1h"))
    ]
    found = list(limit_checks(Settings.model_validate({"quotas": quotas})))
    assert levels(found) == {"quotas.far": "warning"}
    assert "3600 s is longer than the 30 s that clients wait" in text(found, "quotas.far")


def test_a_largest_listing_without_effect() -> None:
    def found(**pulsar: str) -> str:
        return text(limit_checks(settings(pulsar=pulsar)), "pulsar.max_listing")

    assert found(advertise_frame="auto", max_listing="1KB") == (
        "1KB has no effect: the limit of clients is max_message_size, 5MB, at least"
    )
    assert found(max_listing="512MB") == 'it has no effect without advertise_frame = "auto"'
    assert levels(limit_checks(settings(pulsar={"advertise_frame": "auto"}))) == {"limits": "ok"}
