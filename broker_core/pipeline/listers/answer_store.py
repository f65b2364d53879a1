"""The store of plugins' answers in memory: one bound for all kinds.

Memory comes from the ``snapshots`` budget, of which the catalogue's snapshots keep at least a half, since many
different questions could take it all. A listing that several answers are made of is charged once, while it is
referenced (:mod:`~broker_core.memory.permits`); each answer is charged for its key, since clients choose patterns and
properties. The least recently used answer makes room, and an answer that does not fit is not held.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

from broker_core.listing import Listing
from broker_core.memory import CacheState, Leases, Permit, PermitBudget
from broker_core.names import NamespaceName

__all__ = ["OVERHEAD", "AnswerStore"]

#: Bytes of an entry besides its listing and the text of its key.
OVERHEAD: Final = 512
#: The kinds of answers that are kept at a version: returned with one, answered after one was given, and masked.
_AT_VERSION: Final = frozenset({"kept", "version", "masked"})


@dataclass(slots=True)
class _Shared:
    """A listing of ``size`` bytes, with how many entries hold it."""

    listing: Listing
    size: int
    holders: int = 0


@dataclass(slots=True)
class _Entry:
    namespace: NamespaceName
    value: Any
    shared: _Shared | None
    permit: Permit
    own: int  # bytes besides the listing


class AnswerStore:
    """Values by key, the least used first to go."""

    def __init__(self, budget: PermitBudget, leases: Leases) -> None:
        self._budget = budget
        self._leases = leases
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._shared: dict[int, _Shared] = {}
        self._by_namespace: dict[NamespaceName, dict[Hashable, None]] = {}
        self._bytes = 0  # of all that is held

    def __len__(self) -> int:
        return len(self._entries)

    def state(self) -> CacheState:
        """The number and the bytes of held answers."""
        return CacheState(len(self._entries), lambda: self._bytes, self._budget.maximum // 2)

    def get(self, key: Hashable) -> Any | None:
        """The value, now the most recently used."""
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
        if (
            self._budget.maximum
            and own + (0 if listing is None else listing.nbytes) > self._budget.maximum // 2
        ):
            return False
        size = 0 if listing is None or id(listing) in self._shared else listing.nbytes
        if not self._has_room(own + size):
            return False
        if listing is not None and not size and id(listing) not in self._shared:
            # The answers that made room were all that held this listing: it counts anew.
            return self.put(key, namespace, value, listing, text)
        # The lease belongs to the listing: an entry that is dropped while its answer is sent gives nothing back yet.
        leased = listing is None or listing in self._leases
        permit = self._budget.try_acquire(own)
        whole = (
            None if leased or permit is None or listing is None else self._budget.try_acquire(listing.nbytes)
        )
        if permit is None or (whole is None and not leased):
            if permit is not None:
                permit.release()
            return False
        shared = None
        if listing is not None:
            if whole is not None:
                self._leases.hold(listing, whole)
            shared = self._shared.setdefault(id(listing), _Shared(listing, listing.nbytes))
            shared.holders += 1
        self._entries[key] = _Entry(namespace, value, shared, permit, own)
        self._by_namespace.setdefault(namespace, {})[key] = None
        self._bytes += own + size
        return True

    def drop(self, key: Hashable) -> None:
        """Drop one value."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        keys = self._by_namespace[entry.namespace]
        del keys[key]
        if not keys:
            del self._by_namespace[entry.namespace]
        self._bytes -= entry.own
        entry.permit.release()
        shared = entry.shared
        if shared is not None:
            shared.holders -= 1
            if not shared.holders:
                del self._shared[id(shared.listing)]
                self._bytes -= shared.size
        del entry, shared
        self._leases.settle()

    def forget(self, namespace: NamespaceName | None) -> None:
        """Drop the answers at a version about a namespace, or about all: its topics, or its masks, changed.

        The last answers of plugins that may fail stay: they stand in for failures, and have a time limit of their own.
        """
        for key in self.keys(namespace):
            if isinstance(key, tuple) and key[0] in _AT_VERSION:
                self.drop(key)

    def keys(self, namespace: NamespaceName | None) -> list[Hashable]:
        """The keys of all answers about a namespace, or with ``None`` about all."""
        return list(self._entries if namespace is None else self._by_namespace.get(namespace, ()))

    def _has_room(self, size: int) -> bool:
        """Whether ``size`` more bytes may be held; the least recently used entries make room.

        Entries that cannot make room are not dropped: an answer that a client still reads frees nothing, and a request
        that merely waits for permits is no reason to drop any.
        """
        maximum = self._budget.maximum
        if not maximum:
            return True
        self._leases.settle()
        missing = max(self._bytes + size - maximum // 2, size - self._budget.available)
        while missing > 0 and self._entries:
            before = self._bytes
            self.drop(next(iter(self._entries)))
            missing -= before - self._bytes
        self._leases.settle()
        return self._bytes + size <= maximum // 2 and size <= self._budget.available
