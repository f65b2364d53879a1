"""The settings in force, and their change while the server runs.

A part of the server that keeps something derived from live settings registers a function with :meth:`LiveSettings.add`.
It checks the new settings and prepares for them, and returns a function that puts them in force. Nothing is put in
force before all parts are ready, and then everything in one turn of the event loop: each answer follows either the
former or the new settings.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import structlog

from broker_core.errors import BrokerCoreError
from broker_core.settings import (
    SettingChange,
    Settings,
    SettingsError,
    dotted,
    merged,
    setting_changes,
)

__all__ = ["LivePlugins", "LiveSettings", "SettingsDifference"]

_log = structlog.get_logger(__name__)

#: Puts new settings in force, on the event loop; it does not fail.
PutInForce: TypeAlias = Callable[[], None]
#: Prepares for new settings, in a thread unless it is ``async``, and changes nothing; raises if they cannot be
#: used.
Prepare: TypeAlias = Callable[[Settings], PutInForce] | Callable[[Settings], Awaitable[PutInForce]]


class LivePlugins(Protocol):
    """The plugins of a server, as far as their settings are concerned."""

    @property
    def authenticates(self) -> bool:
        """Whether a plugin proves the roles of clients."""

    @property
    def listers(self) -> Sequence[str]:
        """The names of the plugins that list topics."""

    @property
    def live_keys(self) -> Mapping[str, AbstractSet[str]]:
        """By plugin, the keys of its table that are live."""

    async def prepare_settings(
        self, tables: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]
    ) -> Callable[[], None]:
        """Check tables: for each plugin, the one that was read, and the one that is to be in force now.

        The returned function puts the latter in force. Raises :exc:`~broker_core.errors.BrokerCoreError`.
        """


@dataclass(frozen=True, slots=True)
class SettingsDifference:
    """Settings that were read and are not in force: ``live`` changes, and others that need a ``restart``. ``settings``
    are the server's once the live ones are in force.
    """

    settings: Settings
    live: tuple[SettingChange, ...] = ()
    restart: tuple[SettingChange, ...] = ()


class LiveSettings:
    """The settings of one server. ``load`` reads them again, with the same options and environment; without it they
    never change.
    """

    def __init__(self, settings: Settings, load: Callable[[], Settings] | None = None) -> None:
        #: The settings in force. Replaced as a whole, on the event loop.
        self.current = settings
        #: Settings that differ in the file, and wait for a restart.
        self.awaiting_restart: tuple[SettingChange, ...] = ()
        self.plugins: LivePlugins | None = None
        #: The file of the settings, empty if there is none, and ``None`` if that is not known.
        self.file: str | None = None
        #: Whether all parts follow the settings; before that they are not read again.
        self.are_followed = False
        self._load = load
        self._parts: list[tuple[tuple[str, ...], Prepare]] = []

    @property
    def are_given(self) -> bool:
        """Whether a program gave the settings, so that they cannot be read again."""
        return self._load is None

    @property
    def can_reload(self) -> bool:
        """Whether the settings can be read again now."""
        return self._load is not None and self.are_followed

    def add(self, settings: str | tuple[str, ...], prepare: Prepare) -> None:
        """Call ``prepare`` when one of ``settings`` has changed: a table (``limits``) or a setting of it."""
        self._parts.append(((settings,) if isinstance(settings, str) else settings, prepare))

    async def reload(self, *, dry_run: bool = False) -> SettingsDifference:
        """Read the settings again, and put live ones in force, unless it is a ``dry_run``.

        Raises :exc:`SettingsError` if they cannot be used: then nothing is changed. For one caller at a time, if they
        :attr:`can_reload`.
        """
        assert self._load is not None
        before, plugins = self.current, self.plugins
        live_keys = {} if plugins is None else plugins.live_keys
        try:
            loaded = await asyncio.to_thread(self._load)
            changes = setting_changes(before, loaded, live_keys)
            after = merged(before, loaded, live_keys)
            difference = SettingsDifference(
                after,
                tuple(each for each in changes if each.live),
                tuple(each for each in changes if not each.live),
            )
            names = [dotted(change.path) for change in difference.live]
            ready = [
                await _made_ready(prepare, after)
                for settings, prepare in self._parts
                if any(_is_in(name, settings) for name in names)
            ]
            tables = {
                name: (loaded.plugins.table(name), after.plugins.table(name))
                for name in live_keys
                if loaded.plugins.table(name) != before.plugins.table(name)
            }
            if plugins is not None and tables:
                ready.append(await plugins.prepare_settings(tables))
        except SettingsError:
            raise
        except (BrokerCoreError, ValueError, OSError) as error:
            raise SettingsError(str(error)) from error
        if dry_run:
            return difference
        self.awaiting_restart = difference.restart
        self.current = after
        for put_in_force in ready:
            put_in_force()
        for change in difference.live:
            _log.info("setting changed", **change.shown)
        if difference.restart:
            _log.warning(
                "settings of the file that need a restart are left as they were",
                settings=[dotted(change.path) for change in difference.restart],
            )
        return difference


async def _made_ready(prepare: Prepare, settings: Settings) -> PutInForce:
    if inspect.iscoroutinefunction(prepare):
        made: PutInForce = await prepare(settings)
        return made
    return await asyncio.to_thread(cast("Callable[[Settings], PutInForce]", prepare), settings)


def _is_in(name: str, settings: tuple[str, ...]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in settings)
