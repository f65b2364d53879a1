"""Files that are read again when they change on disk: keys, passwords, certificates.

The files of the parts of :class:`~broker_core.reloads.sighup_reloads.Reloads` are checked every two seconds, in a
thread. A part is reloaded once for each change; if that fails, it stays as it was, which is logged once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from broker_core.reloads.sighup_reloads import Reloads

__all__ = ["WatchedFiles"]

_log = structlog.get_logger(__name__)

#: Seconds between two looks.
_PERIOD: Final = 2.0

#: Identifies a version of a file; ``None`` for no file. For a link it is its target's, so that a change of a volume of
#: Kubernetes, which changes the link, is noticed; a granted right changes it too.
_Version: TypeAlias = tuple[int, int, int, int, int] | None


class WatchedFiles:
    """A watch of the files of ``reloads`` from :meth:`start` to :meth:`stop`."""

    def __init__(self, reloads: Reloads, *, period: float = _PERIOD) -> None:
        self._reloads = reloads
        self._period = period
        self._versions: dict[str, Mapping[Path, _Version]] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin the watch. All parts are reloaded once: their files may have changed since they were read."""
        self._versions = await asyncio.to_thread(self._look)
        for name in self._versions:
            await self._reload(name)
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End the watch."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def look(self) -> None:
        """Look once, and reload the parts whose files have changed."""
        seen = await asyncio.to_thread(self._look)
        for name, versions in seen.items():
            if versions == self._versions.get(name):
                continue
            # Before the reload: the next look finds changes made meanwhile.
            self._versions[name] = versions
            if await self._reload(name):
                _log.info("a file has changed: reloaded", part=name)

    async def _reload(self, name: str) -> bool:
        try:
            await self._reloads.reload_part(name)
        except Exception as error:  # noqa: BLE001 - whatever it is, what was there before goes on
            _log.error(
                "a file has changed and cannot be used: what was read before stays",
                part=name,
                error=str(error),
            )
            return False
        return True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._period)
            await self.look()

    def _look(self) -> dict[str, Mapping[Path, _Version]]:
        found: dict[str, Mapping[Path, _Version]] = {}
        for name in self._reloads.parts:
            versions = {path: _version(path) for path in self._reloads.files_of(name)}
            if versions:
                found[name] = versions
        return found


def _version(path: Path) -> _Version:
    try:
        status = os.stat(path)  # noqa: PTH116 - one call for all that is of interest
    except OSError:
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
