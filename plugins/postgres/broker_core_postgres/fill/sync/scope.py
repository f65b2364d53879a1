"""The tenants and namespaces that a mirror covers. All others are neither read nor changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from broker_core.names import NamespaceName
from broker_core_postgres.fill.filling_failed import FillingFailed

__all__ = ["EVERYTHING", "Scope"]

_TENANT: Final = re.compile(r"[-=:.\w*?]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Scope:
    """Patterns with ``*`` and ``?`` of tenants and of namespaces (``tenant/namespace``). None of a kind matches all.

    With both kinds a namespace has to match one pattern of each.
    """

    tenants: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    @classmethod
    def parse(cls, tenants: Iterable[str], namespaces: Iterable[str]) -> Scope:
        """A scope from options. Raises :exc:`FillingFailed` for a pattern that can match nothing."""
        scope = cls(tuple(tenants), tuple(namespaces))
        for tenant in scope.tenants:
            if not _TENANT.fullmatch(tenant):
                raise FillingFailed(f"{tenant!r} is no tenant, nor a pattern of tenants such as 'team-*'")
        for namespace in scope.namespaces:
            parts = namespace.split("/")
            if len(parts) != 2 or not all(_TENANT.fullmatch(part) for part in parts):
                raise FillingFailed(
                    f"{namespace!r} is no namespace, nor a pattern of namespaces such as 'public/*'"
                )
        return scope

    def may_cover(self, tenant: str) -> bool:
        """Whether the scope may cover namespaces of a tenant."""
        own = [namespace.partition("/")[0] for namespace in self.namespaces]
        return _any(self.tenants, tenant) and _any(own, tenant)

    def covers(self, namespace: NamespaceName) -> bool:
        """Whether the scope covers a namespace."""
        return _any(self.tenants, namespace.tenant) and _any(self.namespaces, str(namespace))

    def __str__(self) -> str:
        """The scope as options, sorted: its name in the database."""
        given = [f"--tenant {tenant}" for tenant in sorted(set(self.tenants))]
        given += [f"--namespace {namespace}" for namespace in sorted(set(self.namespaces))]
        return " ".join(given) or "everything"


EVERYTHING: Final = Scope()


def _any(patterns: Sequence[str], name: str) -> bool:
    return not patterns or any(re.match(translate(pattern), name) for pattern in patterns)
