from __future__ import annotations

import pytest

from broker_core.names import NamespaceName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.scope import EVERYTHING, Scope


def covered(scope: Scope, *namespaces: str) -> list[str]:
    return [name for name in namespaces if scope.covers(NamespaceName.parse(name))]


def test_nothing_given_is_everything() -> None:
    assert Scope.parse([], []) == EVERYTHING
    assert covered(EVERYTHING, "a/b", "c/d") == ["a/b", "c/d"]
    assert EVERYTHING.may_cover("a")


def test_patterns_of_tenants_and_namespaces_must_both_match() -> None:
    every = ("a/b", "a/c", "team-1/b", "team-2/c")
    assert covered(Scope.parse(["team-*"], []), *every) == ["team-1/b", "team-2/c"]
    assert covered(Scope.parse([], ["*/b", "a/?"]), *every) == ["a/b", "a/c", "team-1/b"]
    assert covered(Scope.parse(["a"], ["*/b"]), *every) == ["a/b"]
    scope = Scope.parse(["team-?"], ["team-1/*"])
    assert [tenant for tenant in ("a", "team-1", "team-2") if scope.may_cover(tenant)] == ["team-1"]
    assert Scope.parse(["a"], []) != EVERYTHING


@pytest.mark.parametrize("tenant", ["", "a/b", "[a]", "a b", "é"])
def test_what_can_be_no_tenant_is_refused(tenant: str) -> None:
    with pytest.raises(FillingFailed, match="no tenant"):
        Scope.parse([tenant], [])


@pytest.mark.parametrize("namespace", ["", "a", "a/b/c", "a/", "/b", "a/[b]"])
def test_what_can_be_no_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(FillingFailed, match="no namespace"):
        Scope.parse([], [namespace])
