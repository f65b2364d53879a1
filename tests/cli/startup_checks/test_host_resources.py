from __future__ import annotations

import resource

import pytest

from broker_core.cli.startup_checks.host_resources import host_checks
from tests.cli.startup_checks.findings import levels, settings, text


def test_what_the_machine_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 128))
    huge = settings(limits={"snapshots": 2**50})
    assert levels(host_checks(huge)) == {"files": "warning", "memory": "warning"}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 100_000))
    assert levels(host_checks(settings())) == {"files": "ok", "memory": "ok"}
    found = list(host_checks(settings(limits={"connections": 100_000})))
    assert levels(found) == {"files": "ok", "memory": "ok", "limits.connections": "warning"}
    assert "more than the limit of open files has room for" in text(found, "limits.connections")
    assert "limits.connections" not in levels(host_checks(settings(limits={"connections": 90_000})))
