"""Notices of writes to the catalogue's file, by any process of this machine: Linux reports them (inotify).

A commit is written to the log beside the file (``-wal``) first, and then made visible in shared memory, which nothing
reports. So a notice comes shortly before a commit can be read, or long before if the disk is slow: whoever waits looks
soon after it, and now and then without one. A file that takes another's place is reported as an attribute of the one
that it replaces. Elsewhere than on Linux, and of a file without a log, nothing is reported.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["WriteNotices"]

_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4  # of a file that another one is renamed to, or that is deleted: it has a link less
_MOVE_SELF: Final = 0x800
_WRITES: Final = _MODIFY | _ATTRIB | _MOVE_SELF
#: Bytes of notices that are read at a time; what they say is of no interest.
_READ: Final = 64 * 1024


class WriteNotices:
    """Notices of writes to one file. Made and used on one event loop."""

    def __init__(self, path: Path) -> None:
        self._paths = [os.fsencode(path), os.fsencode(path) + b"-wal"]
        self._waiting: dict[object, Callable[[], None]] = {}
        self._libc: ctypes.CDLL | None = None
        self._file = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = not sys.platform.startswith("linux")

    def close(self) -> None:
        """Report nothing any more."""
        self._is_closed = True
        self._listen(None)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def next(self, key: object, notify: Callable[[], None]) -> bool:
        """Call ``notify`` once, at the next write after this call; false if writes are not reported.

        A later call with the same ``key`` is in the place of an earlier one.
        """
        # While this one waits, no other file took the place of one that is watched: that would have been reported.
        if self._is_closed or not (key in self._waiting or self._watches()):
            return False
        self._waiting[key] = notify
        self._listen(asyncio.get_running_loop())
        return True

    def forget(self, key: object) -> None:
        """Do not call what was given with this key."""
        self._waiting.pop(key, None)
        if not self._waiting:
            self._listen(None)

    def _watches(self) -> bool:
        """Watch the files that are there now, each once; false if that is not to be had."""
        try:
            if self._libc is None:
                self._libc = ctypes.CDLL(None, use_errno=True)
                self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            watch = self._libc.inotify_add_watch
        except (OSError, AttributeError):  # a C library without it
            self._is_closed = True
            return False
        return self._file >= 0 and all(watch(self._file, path, _WRITES) >= 0 for path in self._paths)

    def _listen(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Hear of writes on a loop; ``None``: of none. What was written before is left out."""
        if loop is self._loop:
            return
        self._drain()
        if self._loop is not None:
            self._loop.remove_reader(self._file)
        if loop is not None:
            loop.add_reader(self._file, self._written)
        self._loop = loop

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._file, _READ)) > _READ // 2:
                pass

    def _written(self) -> None:
        waiting, self._waiting = self._waiting, {}
        # Until the next one is wanted: a busy file would wake the loop at each of its writes.
        self._listen(None)
        for notify in waiting.values():
            notify()
