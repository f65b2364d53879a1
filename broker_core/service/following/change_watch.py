"""Wakes waiters for changes of a namespace: by notices of plugins, and by looks at the catalogue's file.

Other processes write the catalogue too, and notify nobody. So its file is looked at some times a second, once however
many wait, and only while somebody does; the versions of namespaces are read if anything was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from broker_core.catalog import CatalogLogReader
from broker_core.change_log import CatalogVersion
from broker_core.names import NamespaceName
from broker_core.pipeline import ChangeNotices

__all__ = ["ChangeWatch"]

#: Seconds between looks.
_PERIOD: Final = 0.1
_LATE: Final = 2 * _PERIOD


class ChangeWatch:
    """Watches namespaces; for one event loop. ``change_log`` is the catalogue's, ``None`` before a cluster."""

    def __init__(self, notices: ChangeNotices, change_log: CatalogLogReader | None) -> None:
        self._notices = notices
        self._change_log = change_log
        self._waiting: dict[NamespaceName, dict[object, Callable[[], None]]] = {}
        self._versions: dict[NamespaceName, CatalogVersion | None] = {}
        self._state: int | None = None
        self._looked = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._end: Callable[[], None] | None = None

    def watch(self, namespace: NamespaceName, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` whenever the namespace may have changed, until the returned function is called.

        A change that is committed before this is called is no change.
        """
        if self._end is None:
            self._end = self._notices.subscribe(self._noticed)
            self._looked = asyncio.get_running_loop().time()
            self._look_later()
        if namespace not in self._waiting:
            self._waiting[namespace] = {}
            if self._change_log is not None:
                self._versions[namespace] = self._change_log.version_now(namespace)
        key = object()
        self._waiting[namespace][key] = wake
        return partial(self._leave, namespace, key)

    def _leave(self, namespace: NamespaceName, key: object) -> None:
        waiting = self._waiting.get(namespace)
        if waiting is None or waiting.pop(key, None) is None or waiting:
            return
        del self._waiting[namespace]
        self._versions.pop(namespace, None)
        if not self._waiting and self._end is not None:
            self._end()
            self._end = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _noticed(self, namespace: NamespaceName | None) -> None:
        for each in list(self._waiting) if namespace is None else [namespace]:
            self._wake(each)

    def _wake(self, namespace: NamespaceName) -> None:
        for wake in list(self._waiting.get(namespace, {}).values()):
            wake()

    def _look_later(self) -> None:
        if self._change_log is not None:
            self._timer = asyncio.get_running_loop().call_later(_PERIOD, self.look)

    def is_recent(self) -> bool:
        """Whether the known state is of the last moment: a late look says nothing of now."""
        return self._change_log is None or asyncio.get_running_loop().time() - self._looked < _LATE

    def look(self) -> None:
        """Look now, and wake the waiters whose namespaces have another version."""
        if self._timer is not None:
            self._timer.cancel()
        self._look_later()
        change_log = self._change_log
        if change_log is None:
            return
        self._looked = asyncio.get_running_loop().time()
        state = change_log.state_now()
        if state is not None and state == self._state:
            return
        self._state = state
        for namespace, before in list(self._versions.items()):
            # Whoever asks while the file cannot be read hears of that.
            now = change_log.version_now(namespace) if state is not None else None
            if now is None or before is None or not now.same_state(before):
                self._versions[namespace] = now
                self._wake(namespace)
