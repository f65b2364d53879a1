"""Reloads while the server runs: all parts at the operator's request, one when its files change.

A part whose reload fails stays as it was; the others are reloaded all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from broker_core.reloads.live_settings import LiveSettings, SettingsDifference
from broker_core.settings import Settings, SettingsError

__all__ = ["Reloaded", "Reloads"]

_log = structlog.get_logger(__name__)

_NOTHING: Final = "nothing is read again while the server runs: settings need a restart"
_NO_FILE: Final = "the settings were given by the program that runs the server, and cannot be read again"
_STARTING: Final = "the server is starting"
#: The name of the settings among the parts.
_SETTINGS: Final = "settings"


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload: the reloaded parts, the failed ones with the reasons, and the changed settings."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    settings: SettingsDifference | None = None


class Reloads:
    """The parts by name, in the order in which they were added; before them the settings, if they can be read again.

    Without ``settings`` they are the defaults, which cannot.
    """

    def __init__(self, settings: LiveSettings | None = None) -> None:
        self.settings = settings or LiveSettings(Settings())
        self._parts: dict[str, Callable[[], object]] = {}
        self._files: dict[str, Callable[[], Iterable[Path]]] = {}
        self._one_at_a_time = asyncio.Lock()
        #: Called when a part was read again.
        self.on_reload: list[Callable[[], object]] = []
        #: The reasons of the parts whose last reload has failed.
        self.problems: dict[str, str] = {}
        #: Whether the last reload of each part has failed, so that its former state is in force.
        self.failing: dict[str, bool] = {}

    def add(
        self, name: str, reload: Callable[[], object], files: Callable[[], Iterable[Path]] | None = None
    ) -> None:
        """Call ``reload`` in a thread when the operator requests it. If it raises, the former state stays.

        ``files`` returns the files that it reads at this moment: ``reload`` is also called when they change
        (:class:`~broker_core.reloads.watched_files.WatchedFiles`).
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
        """The files of a part; empty if it has none."""
        return tuple(self._files[name]()) if name in self._files else ()

    async def reload_part(self, name: str) -> None:
        """Reload one part, after a reload under way; raises its errors."""
        async with self._one_at_a_time:
            await self._reload(name)

    async def difference(self) -> SettingsDifference:
        """The settings that :meth:`reload_all` would change. Raises :exc:`~broker_core.settings.SettingsError`."""
        async with self._one_at_a_time:
            if not self.settings.can_reload:
                raise SettingsError(_NO_FILE if self.settings.are_given else _STARTING)
            return await self.settings.reload(dry_run=True)

    async def reload_all(self) -> Reloaded:
        """Read the settings again, then reload all parts, whether or not the settings could be used. One line is
        logged."""
        async with self._one_at_a_time:
            done: list[str] = []
            failed: dict[str, str] = {}
            difference: SettingsDifference | None = None
            if self.settings.can_reload:
                try:
                    difference = await self.settings.reload()
                    done.append(_SETTINGS)
                    self._ended(_SETTINGS)
                except SettingsError as error:
                    failed[_SETTINGS] = str(error)
                    self._ended(_SETTINGS, error)
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
        return Reloaded(done, failed, difference)

    async def _reload(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._parts[name])
        except Exception as error:
            self._ended(name, error)
            raise
        self._ended(name)
        for each in self.on_reload:
            each()

    def _ended(self, name: str, error: Exception | None = None) -> None:
        self.failing[name] = error is not None
        if error is None:
            self.problems.pop(name, None)
        else:
            self.problems[name] = str(error)
