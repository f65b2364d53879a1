from __future__ import annotations

from broker_core.cli.startup_checks.limits import limit_checks
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
