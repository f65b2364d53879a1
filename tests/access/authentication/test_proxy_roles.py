"""The rules of proxies, as a broker applies them: docs/reference/pulsar-behaviour.md#authentication"""

from __future__ import annotations

import pytest

from broker_core.access.authentication.failures import InvalidRoles
from broker_core.access.authentication.proxy_roles import check_roles

PROXIES = frozenset({"proxy", "proxy2"})
INVALID = "Invalid roles."
VERSION = "Must not set proxyVersion without connecting as a ProxyRole."


@pytest.mark.parametrize(
    ("role", "original", "version"),
    [
        ("proxy", "alice", None),
        ("proxy", "alice", "4.2.4"),
        ("alice", None, None),
        ("alice", "", None),  # authorization denies it everything
    ],
)
def test_accepted(role: str, original: str | None, version: str | None) -> None:
    check_roles(PROXIES, role, original, version)


@pytest.mark.parametrize(
    ("role", "original", "version", "message"),
    [
        ("proxy", None, None, INVALID),
        ("proxy", "", None, INVALID),
        ("proxy", "proxy", None, INVALID),
        ("proxy", "proxy2", None, INVALID),
        ("admin", "alice", None, INVALID),
        ("alice", "alice", None, INVALID),
        ("alice", "proxy", None, INVALID),
        ("alice", "bob", "4.2.4", INVALID),
        ("alice", None, "4.2.4", VERSION),
        ("alice", "", "", VERSION),
    ],
)
def test_refused(role: str, original: str | None, version: str | None, message: str) -> None:
    with pytest.raises(InvalidRoles) as refused:
        check_roles(PROXIES, role, original, version)
    assert refused.value.message == message


def test_without_proxy_roles_nobody_names_another() -> None:
    with pytest.raises(InvalidRoles, match=INVALID):
        check_roles((), "alice", "bob", None)
