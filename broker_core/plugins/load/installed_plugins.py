"""The plugins that are installed in this environment, and the import of one by its name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from broker_core.plugin_api import PROJECT
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.raised_exceptions import in_words

__all__ = ["InstalledPlugin", "choose", "did_you_mean", "import_plugin", "installed_plugins", "origin_text"]


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """An entry point of the group ``broker_core``; nothing of it is imported yet."""

    name: str
    distribution: str | None
    version: str | None
    entry_point: EntryPoint

    @property
    def origin(self) -> str | None:
        return origin_text(self.distribution, self.version)


def installed_plugins() -> list[InstalledPlugin]:
    """All plugins of this environment, enabled or not, by name."""
    found = []
    for entry_point in entry_points(group=PROJECT):
        dist = entry_point.dist
        found.append(
            InstalledPlugin(
                entry_point.name, dist.name if dist else None, dist.version if dist else None, entry_point
            )
        )
    return sorted(found, key=lambda plugin: (plugin.name, plugin.distribution or ""))


def choose(name: str, installed: Sequence[InstalledPlugin]) -> InstalledPlugin:
    found = [plugin for plugin in installed if plugin.name == name]
    if not found:
        known = sorted({plugin.name for plugin in installed})
        listed = f"installed are {', '.join(known)}" if known else "no plugin is installed"
        raise PluginLoadError(
            name,
            None,
            f"is enabled, but no installed distribution has an entry point of that name in the group {PROJECT!r}; "
            f"{listed}{did_you_mean(name, known)}",
        )
    if len({plugin.distribution for plugin in found}) > 1:
        origins = " and ".join(plugin.origin or "an unknown distribution" for plugin in found)
        raise PluginLoadError(name, None, f"is installed twice, by {origins}: uninstall one of them")
    return found[0]


def import_plugin(installed: InstalledPlugin) -> object:
    try:
        return installed.entry_point.load()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = f"cannot be imported from {installed.entry_point.value!r}"
        raise PluginLoadError(installed.name, installed.origin, f"{where}: {in_words(error)}") from error


def origin_text(distribution: str | None, version: str | None) -> str | None:
    return f"{distribution} {version}" if distribution and version else distribution


def did_you_mean(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
