"""Answers of plugins that are held in memory, for whatever reason: one bound for all of them.

Memory comes from the ``snapshots`` budget, of which the catalogue's snapshots keep at least a half, since many
different questions could take it all. A listing that several answers are made of is charged once; each answer is
charged for its key, since clients choose patterns and properties. The least used answer makes room, and what does not
fit is not held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from broker_core.listing import Listing
from broker_core.names import NamespaceName
from broker_core.permits import Permit, PermitBudget

__all__ = ["OVERHEAD", "AnswerStore"]

#: Bytes of an entry besides its listing and the text of its key.
OVERHEAD: Final = 512


@dataclass(slots=True)
class _Shared:
    """A listing with how many entries hold it; the permit is its bytes."""

    listing: Listing
    holders: int
    permit: Permit | None


@dataclass(slots=True)
class _Entry:
    namespace: NamespaceName
    value: Any
    shared: _Shared | None
    permit: Permit


class AnswerStore:
    """Values by key, the least used first to go."""

    def __init__(self, budget: PermitBudget) -> None:
        self._budget = budget
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._shared: dict[int, _Shared] = {}
        self._by_namespace: dict[NamespaceName, dict[Hashable, None]] = {}
        self._bytes = 0  # of all that is held

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Any | None:
        """The value, which is used by this."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry.value

    def put(
        self, key: Hashable, namespace: NamespaceName, value: Any, listing: Listing | None, text: int = 0
    ) -> bool:
        """Hold ``value``, which refers to ``listing``, in place of an older one, if there is room or some can be made.

        ``text`` counts the bytes of the key.
        """
        self.drop(key)
        own = OVERHEAD + text
        if self._budget.maximum and own + (listing.nbytes if listing else 0) > self._budget.maximum // 2:
            return False
        shared = None if listing is None else self._retained(listing)
        permit = None
        if shared is not None and shared.permit is None:
            shared.permit = self._charged(shared.listing.nbytes)
        if shared is None or shared.permit is not None:
            permit = self._charged(own)
        if permit is None:
            self._released(shared)
            return False
        self._entries[key] = _Entry(namespace, value, shared, permit)
        self._by_namespace.setdefault(namespace, {})[key] = None
        return True

    def drop(self, key: Hashable) -> None:
        """Let go of one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        keys = self._by_namespace[entry.namespace]
        del keys[key]
        if not keys:
            del self._by_namespace[entry.namespace]
        self._bytes -= entry.permit.count
        entry.permit.release()
        self._released(entry.shared)

    def keys(self, namespace: NamespaceName) -> list[Hashable]:
        """The keys of all answers about a namespace."""
        return list(self._by_namespace.get(namespace, ()))

    def _retained(self, listing: Listing) -> _Shared:
        shared = self._shared.get(id(listing))
        if shared is None:
            shared = self._shared[id(listing)] = _Shared(listing, 0, None)
        shared.holders += 1
        return shared

    def _released(self, shared: _Shared | None) -> None:
        if shared is None:
            return
        shared.holders -= 1
        if shared.holders == 0:
            del self._shared[id(shared.listing)]
            if shared.permit is not None:
                self._bytes -= shared.permit.count
                shared.permit.release()

    def _charged(self, size: int) -> Permit | None:
        """Permits for so many bytes, for which the least used entries make room."""
        maximum = self._budget.maximum
        while maximum and self._bytes + size > maximum // 2 and self._entries:
            self.drop(next(iter(self._entries)))
        if maximum and self._bytes + size > maximum // 2:
            return None
        permit = self._budget.try_acquire(size)
        while permit is None and self._entries:
            self.drop(next(iter(self._entries)))
            permit = self._budget.try_acquire(size)
        if permit is not None:
            self._bytes += permit.count
        return permit
