"""Wakes waiters for changes of a namespace: by notices of plugins, and by looks at the catalogue's file.

Other processes write the catalogue too, and notify nobody. So its file is looked at soon after each write that the
system reports, where it reports them, else some times a second; once however many wait, and only while somebody does.
The versions of namespaces are read if anything was committed.
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

#: The fewest seconds between looks, and also the most if writes are not reported.
_PERIOD: Final = 0.1
_LATE: Final = 2 * _PERIOD
#: Seconds from a reported write to a look: by then most commits can be read. After a look that found one there is
#: another, for a commit that was written by then and could not be read.
_SOON: Final = 0.02
#: Seconds between looks for a commit that cannot be read yet, and the time for which it is looked for.
_PENDING: Final = 0.05
_COMMITS: Final = 1.0
#: Seconds between looks without a reported write, for a commit that takes longer still.
_QUIET: Final = 1.0


class ChangeWatch:
    """Watches namespaces; for one event loop. ``change_log`` is the catalogue's, ``None`` before a cluster."""

    def __init__(self, notices: ChangeNotices, change_log: CatalogLogReader | None) -> None:
        self._notices = notices
        self._change_log = change_log
        self._waiting: dict[NamespaceName, dict[object, Callable[[], None]]] = {}
        self._versions: dict[NamespaceName, CatalogVersion | None] = {}
        self._state: int | None = None
        self._looked = 0.0
        self._expects_until = 0.0  # a commit that was written, and cannot be read yet
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None
        self._end: Callable[[], None] | None = None

    def watch(self, namespace: NamespaceName, wake: Callable[[], None]) -> Callable[[], None]:
        """Call ``wake`` whenever the namespace may have changed, until the returned function is called.

        A change that is committed before this is called is no change.
        """
        if self._end is None:
            self._end = self._notices.subscribe(self._noticed)
            self._loop = asyncio.get_running_loop()
            self._looked = self._loop.time()
            self._look_later(self._hear())
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
            if self._change_log is not None:
                self._change_log.writes.forget(self)

    def _noticed(self, namespace: NamespaceName | None) -> None:
        for each in list(self._waiting) if namespace is None else [namespace]:
            self._wake(each)

    def _wake(self, namespace: NamespaceName) -> None:
        for wake in list(self._waiting.get(namespace, {}).values()):
            wake()

    def _hear(self) -> bool:
        """Ask for a notice of the next write; false if writes are not reported."""
        return self._change_log is not None and self._change_log.writes.next(self, self._written)

    def _written(self) -> None:
        """Look soon: the file was written, or will be in a moment."""
        now = self._loop.time()
        self._expects_until = now + _COMMITS
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._loop.call_at(max(now + _SOON, self._looked + _PERIOD), self.look)

    def _look_later(self, is_reported: bool) -> None:
        """Look again after a while, if no write is reported before."""
        if self._change_log is not None:
            pause = _PERIOD
            if is_reported:
                pause = _QUIET if self._looked >= self._expects_until else _PENDING
            self._timer = self._loop.call_later(pause, self.look)

    def look_if_late(self) -> None:
        """Look now if the last look says nothing of the last moment."""
        if self._change_log is not None and self._loop.time() - self._looked >= _LATE:
            self.look()

    def look(self) -> None:
        """Look now, and wake the waiters whose namespaces have another version."""
        if self._timer is not None:
            self._timer.cancel()
        change_log = self._change_log
        if change_log is None:
            return
        is_reported = self._hear()  # first: what is written after the look is reported
        self._looked = self._loop.time()
        state = change_log.state_now()
        is_known = state is not None and state == self._state
        if not is_known:
            self._expects_until = self._looked + _PENDING
        self._look_later(is_reported)
        if is_known:
            return
        self._state = state
        for namespace, before in list(self._versions.items()):
            # Whoever asks while the file cannot be read hears of that.
            now = change_log.version_seen(namespace) if state is not None else None
            if now is None or before is None or not now.same_state(before):
                self._versions[namespace] = now
                self._wake(namespace)
