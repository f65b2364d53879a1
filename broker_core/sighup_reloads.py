"""What is read again while the server runs: on SIGHUP everything, and what has files of its own when they change.

A part that fails to be read again stays as it was; the others are read all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import structlog

__all__ = ["Reloads"]

_log = structlog.get_logger(__name__)

_NOTHING: Final = "nothing is read again while the server runs: settings need a restart"


class Reloads:
    """The parts by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: dict[str, Callable[[], object]] = {}
        self._files: dict[str, Callable[[], Iterable[Path]]] = {}
        self._one_at_a_time = asyncio.Lock()
        #: Of each part, whether its last reload has failed, so that what it had before is in force.
        self.failing: dict[str, bool] = {}

    def add(
        self, name: str, reload: Callable[[], object], files: Callable[[], Iterable[Path]] | None = None
    ) -> None:
        """Call ``reload`` in a thread when the operator asks for it. It raises where the former state stays.

        ``files`` are the files that it reads, at this moment: it is called when they change, too
        (:class:`~broker_core.watched_files.WatchedFiles`).
        """
        self._parts[name] = reload
        self.failing[name] = False
        if files is not None:
            self._files[name] = files

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts."""
        return tuple(self._parts)

    def files_of(self, name: str) -> tuple[Path, ...]:
        """The files of a part, none for one that has told none."""
        return tuple(self._files[name]()) if name in self._files else ()

    async def reload_part(self, name: str) -> None:
        """Reload one part, after what is reloaded now; raises what it raises."""
        async with self._one_at_a_time:
            await self._reload(name)

    async def reload_all(self) -> bool:
        """Reload all parts, and say so in one line of the log; whether none has failed."""
        async with self._one_at_a_time:
            done: list[str] = []
            failed: dict[str, str] = {}
            for name in self.parts:
                try:
                    await self._reload(name)
                    done.append(name)
                except Exception as error:  # noqa: BLE001 - whatever it is, what was there before goes on
                    failed[name] = str(error)
        if failed:
            _log.error("reloaded in part: what failed stays as it was", reloaded=done, failed=failed)
        elif done:
            _log.info("reloaded", reloaded=done)
        else:
            _log.info("reloaded", reloaded=done, note=_NOTHING)
        return not failed

    async def _reload(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._parts[name])
        except Exception:
            self.failing[name] = True
            raise
        self.failing[name] = False
