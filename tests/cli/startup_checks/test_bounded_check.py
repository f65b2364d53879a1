from __future__ import annotations

import threading

from broker_core.cli.startup_checks.bounded_check import bounded
from broker_core.errors import BrokerCoreError
from broker_core.plugin_api.check_findings import Check


def test_what_raises_is_an_error_and_what_hangs_is_left() -> None:
    def fails() -> list[Check]:
        raise BrokerCoreError("cannot open x://app:" + "hunter2" + "@h:\n  refused")

    (error,) = bounded("part", fails)
    assert error == Check.error("part", "cannot open x://app:********" + "@h: refused")
    (error,) = bounded("part", lambda: [Check.ok("a", "b")] * int("x"))
    assert "the check failed: ValueError" in error.text
    end = threading.Event()

    def hangs() -> list[Check]:
        end.wait(60)
        return []

    (error,) = bounded("part", hangs, patience=0.05)
    end.set()
    assert error == Check.error("part", "no result within 0.05 s")
