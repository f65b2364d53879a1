"""What is read again while the server runs (SIGHUP): log files now, and whatever has a file that others replace.

A part that fails to be read again stays as it was; the others are read all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

__all__ = ["Reloads"]

_log = structlog.get_logger(__name__)

_NOTHING: Final = "nothing is read again while the server runs: settings need a restart"


class Reloads:
    """The parts by name, in the order in which they were added."""

    def __init__(self) -> None:
        self._parts: dict[str, Callable[[], object]] = {}
        self._one_at_a_time = asyncio.Lock()

    def add(self, name: str, reload: Callable[[], object]) -> None:
        """Call ``reload`` in a thread when the operator asks for it. It raises where the former state stays."""
        self._parts[name] = reload

    async def reload_all(self) -> bool:
        """Reload all parts, and say so in one line of the log; whether none has failed."""
        async with self._one_at_a_time:
            done: list[str] = []
            failed: dict[str, str] = {}
            for name, reload in list(self._parts.items()):
                try:
                    await asyncio.to_thread(reload)
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
