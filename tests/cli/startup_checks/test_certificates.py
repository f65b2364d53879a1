from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from broker_core.cli.startup_checks.certificates import certificate_checks
from broker_core.plugin_api.check_findings import Check
from tests.cli.startup_checks.findings import levels, settings, text
from tests.support.certificates import Authority, Issued


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def found(issued: Issued, **table: Any) -> list[Check]:
    files = {"certificate": str(issued.certificate), "key": str(issued.key), **table}
    return list(certificate_checks(settings(pulsar={"tls": files})))


def test_nothing_is_said_without_tls() -> None:
    assert list(certificate_checks(settings())) == []
    assert list(certificate_checks(settings(http={}))) == []


def test_an_end_that_is_near_is_a_warning(authority: Authority) -> None:
    checks = found(authority.issue("server"))
    assert levels(checks) == {"pulsar.tls": "warning"}  # of ten days
    assert "expires on" in text(checks, "pulsar.tls")
    assert "expired on" in text(found(authority.issue("late", expired=True)), "pulsar.tls")


@pytest.mark.parametrize(
    ("host", "is_for"),
    [("lookups.example.com", True), ("a.b.example.com", False), ("LOCALHOST", True), ("127.0.0.1", False)],
)
def test_the_host_of_clients_is_in_the_certificate(authority: Authority, host: str, is_for: bool) -> None:
    issued = authority.issue("server", hosts=("localhost", "*.example.com"))
    checks = found(issued, advertised=host)
    assert ("pulsar.tls.advertised" not in levels(checks)) == is_for
    if not is_for:
        assert "localhost, *.example.com" in text(checks, "pulsar.tls.advertised")


def test_what_cannot_be_used_is_an_error(authority: Authority) -> None:
    issued = authority.issue("server")
    checks = found(Issued(issued.certificate, authority.issue("other").key))
    assert levels(checks) == {"pulsar.tls": "error"}
    assert text(checks, "pulsar.tls").startswith("key: ")


def test_http_has_its_own(authority: Authority) -> None:
    issued = authority.issue("server")
    files = {"certificate": str(issued.certificate), "key": str(issued.key)}
    assert levels(certificate_checks(settings(http={"tls": files}))) == {"http.tls": "warning"}
