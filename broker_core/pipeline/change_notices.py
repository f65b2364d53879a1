"""Notices that topics changed: to caches of answers, and to callers that wait for changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from broker_core.names import NamespaceName

__all__ = ["ChangeNotices", "Mark", "OnChange"]

#: Called with a namespace whose topics, or whose masks, changed; ``None``: all namespaces.
OnChange: TypeAlias = Callable[[NamespaceName | None], None]
#: A point between two notices.
Mark: TypeAlias = tuple[int, int]

#: Namespaces whose notices are counted separately; plugins choose them.
_MANY: Final = 10_000


class ChangeNotices:
    """The notices of one broker; for its event loop. Subscribers are called at once, in the order of subscription."""

    def __init__(self) -> None:
        self._subscribers: dict[int, OnChange] = {}
        self._number = 0
        self._all = 0
        self._of: dict[NamespaceName, int] = {}

    def subscribe(self, on_change: OnChange) -> Callable[[], None]:
        """Call ``on_change`` from now on; the returned function ends it."""
        self._number += 1
        number = self._number
        self._subscribers[number] = on_change
        return lambda: (self._subscribers.pop(number, None), None)[1]

    def announce(self, namespace: NamespaceName | None) -> None:
        """Announce that answers about a namespace, or with ``None`` about all, change from now on."""
        if namespace is None or (namespace not in self._of and len(self._of) >= _MANY):
            self._all += 1
            self._of.clear()
        else:
            self._of[namespace] = self._of.get(namespace, 0) + 1
        for on_change in list(self._subscribers.values()):
            on_change(namespace)

    def mark(self, namespace: NamespaceName) -> Mark:
        """The current mark, for :meth:`unchanged`."""
        return self._all, self._of.get(namespace, 0)

    def unchanged(self, namespace: NamespaceName, since: Mark) -> bool:
        """Whether no change of the namespace was announced since the mark."""
        return self.mark(namespace) == since
