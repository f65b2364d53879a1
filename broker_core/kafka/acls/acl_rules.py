"""Decisions by a set of Kafka's ACLs, as of Kafka's StandardAuthorizer.

In this order: super users may do everything; a ``DENY`` that matches denies, however general; an ``ALLOW`` that matches
allows; if no ACL at all is about the resource, ``everyone`` decides; else it is denied. A binding matches if its
name, its principal (equal, or ``User:*``), its host (equal, or ``*``) and its operation do (:mod:`.operations`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from broker_core.kafka.acls.bindings import AclBinding, Operation, Permission, ResourceType
from broker_core.kafka.acls.compiled_masks import CompiledMasks, NamedChunk
from broker_core.kafka.acls.name_patterns import NamePatterns, SortedNames
from broker_core.kafka.acls.operations import OPERATIONS, allowing, bits, denying

__all__ = ["AclRules", "AskerRules"]

_ALL_USERS: Final = "User:*"
_ANY_HOST: Final = "*"
#: Principals from one host whose rules are kept compiled.
_KEPT: Final = 128


class AskerRules:
    """The rules for one principal from one host. Patterns are compiled when they are first needed."""

    __slots__ = ("_about", "_allowed", "_denied", "_everyone", "_masks", "bindings", "free")

    def __init__(
        self,
        bindings: Iterable[AclBinding],
        about: Mapping[ResourceType, NamePatterns],
        masks: CompiledMasks,
        *,
        everyone: bool,
        free: bool = False,
    ) -> None:
        """``about`` are the names that any ACL is about, ``masks`` the cached masks of all askers."""
        #: The bindings that match the asker.
        self.bindings = tuple(bindings)
        self._about = about
        self._everyone = everyone
        self._allowed: dict[tuple[ResourceType, Operation], NamePatterns] = {}
        self._denied: dict[tuple[ResourceType, Operation], NamePatterns] = {}
        self._masks = masks
        #: Whether the asker is a super user.
        self.free = free

    def allows(self, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the operation is allowed on one resource."""
        if self.free:
            return True
        allowed, denied = self._patterns(operation, kind)
        text = name.encode()
        if denied.matches(text):
            return False
        if allowed.matches(text):
            return True
        return self._everyone and not self._about[kind].matches(text)

    def mask(self, operation: Operation, names: SortedNames) -> npt.NDArray[np.bool_] | None:
        """The topics on which the operation is allowed; ``None``: on all of them."""
        if self.free:
            return None
        allowed, denied = self._patterns(operation, ResourceType.TOPIC)
        found = np.zeros(names.size, np.bool_)
        if self._everyone:
            self._about[ResourceType.TOPIC].mark(names, found, value=True)
            np.logical_not(found, out=found)
        allowed.mark(names, found, value=True)
        denied.mark(names, found, value=False)
        return None if found.all() else found

    def chunk_mask(self, operation: Operation, chunk: NamedChunk) -> npt.NDArray[np.bool_] | None:
        """The topics of a chunk on which the operation is allowed; it is kept with the chunk. On one thread."""
        return None if self.free else self._masks.mask(self, operation, chunk, self.mask)

    def operations(self, kind: ResourceType, name: str) -> int:
        """The bits of the operations that are allowed on a topic or the cluster."""
        return bits(operation for operation in OPERATIONS[kind] if self.allows(operation, kind, name))

    def operations_column(self, names: SortedNames) -> npt.NDArray[np.int32]:
        """The bits of the operations that are allowed on each topic."""
        found = np.zeros(names.size, np.int32)
        for operation in OPERATIONS[ResourceType.TOPIC]:
            mask = self.mask(operation, names)
            if mask is None:
                found |= np.int32(1 << operation)
            else:
                found |= mask.astype(np.int32) << np.int32(operation)
        return found

    def _patterns(self, operation: Operation, kind: ResourceType) -> tuple[NamePatterns, NamePatterns]:
        requested = (kind, operation)
        denied = self._denied.get(requested)
        if denied is None:
            self._allowed[requested] = self._compiled(kind, Permission.ALLOW, allowing(operation))
            self._denied[requested] = denied = self._compiled(kind, Permission.DENY, denying(operation))
        return self._allowed[requested], denied

    def _compiled(
        self, kind: ResourceType, permission: Permission, operations: frozenset[Operation]
    ) -> NamePatterns:
        return NamePatterns(
            binding
            for binding in self.bindings
            if binding.resource_type is kind
            and binding.permission is permission
            and binding.operation in operations
        )


class AclRules:
    """The ACLs of one namespace at one version; immutable."""

    def __init__(
        self, bindings: Iterable[AclBinding], *, super_users: Iterable[str] = (), everyone: bool = False
    ) -> None:
        self.bindings = tuple(bindings)
        self._super_users = frozenset(super_users)
        self._everyone = everyone
        self._about = {
            kind: NamePatterns(binding for binding in self.bindings if binding.resource_type is kind)
            for kind in ResourceType
        }
        self._principals: dict[str, list[AclBinding]] = {}
        for binding in self.bindings:
            self._principals.setdefault(binding.principal, []).append(binding)
        self._hosts = frozenset(_written(binding.host) for binding in self.bindings)
        self._masks = CompiledMasks()
        self._compiled = lru_cache(_KEPT)(self._compile)

    def of(self, principal: str, host: str) -> AskerRules:
        """The rules for a principal from an address."""
        # All principals that no ACL names share rules, so that compiled rules do not grow with the askers.
        known = principal in self._principals or principal in self._super_users
        host = _written(host)
        return self._compiled(principal if known else None, host if host in self._hosts else None)

    def _compile(self, principal: str | None, host: str | None) -> AskerRules:
        named = () if principal in (None, _ALL_USERS) else self._principals.get(principal, ())
        return AskerRules(
            (
                binding
                for binding in (*named, *self._principals.get(_ALL_USERS, ()))
                if binding.host == _ANY_HOST or _written(binding.host) == host
            ),
            self._about,
            self._masks,
            everyone=self._everyone,
            free=principal in self._super_users,
        )


def _written(host: str) -> str:
    """The canonical text of an address: Kafka writes ``::1`` as ``0:0:0:0:0:0:0:1``, and people write it shorter."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)
