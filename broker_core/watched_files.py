"""Files that are read again when they change on disk: keys, passwords, certificates.

The files of the parts of :class:`~broker_core.sighup_reloads.Reloads` are looked at every two seconds, in a thread. A
part is reloaded once for each change; one that cannot be read stays as it was, and the log says so once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from broker_core.sighup_reloads import Reloads

__all__ = ["WatchedFiles"]

_log = structlog.get_logger(__name__)

#: Seconds between two looks.
_PERIOD: Final = 2.0

#: What tells a version of a file from another; ``None`` for no file. Of a link it is that of its target, so that a
#: volume of Kubernetes, which changes the link, is seen to change; a right that is given changes it too.
_Version: TypeAlias = tuple[int, int, int, int, int] | None


class WatchedFiles:
    """Looks at the files of ``reloads`` from :meth:`start` to :meth:`stop`."""

    def __init__(self, reloads: Reloads, *, period: float = _PERIOD) -> None:
        self._reloads = reloads
        self._period = period
        self._versions: dict[str, Mapping[Path, _Version]] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look from now on. All are read once more: they may have changed since they were."""
        self._versions = await asyncio.to_thread(self._look)
        for name in self._versions:
            await self._reload(name)
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Look no more."""
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
            # Before the reload: what changes meanwhile is a change for the next look.
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
