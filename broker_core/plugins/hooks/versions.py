"""The versions that plugins give before the work (``broker_core_version``): requested once for each request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.errors import ListingFailed
from broker_core.plugin_api import ListingRequest, TopicListingResult
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.declared_dependencies import DeclaredDependencies

__all__ = ["KnownVersions", "VersionHook", "check_version"]

#: The versions that plugins have given for one request, by their names.
KnownVersions: TypeAlias = dict[str, str | None]

_VERSION: Final = "broker_core_version"
#: Characters of a version.
_LONGEST: Final = 1024


@dataclass(slots=True, eq=False)
class VersionHook:
    """Caller of the hook for versions; ``callers`` are by plugin and hook."""

    _callers: Mapping[str, Mapping[str, HookCaller]]
    _words: DeclaredDependencies

    async def of(self, request: ListingRequest, plugin: str, known: KnownVersions) -> str | None:
        """The version of the plugin; ``None`` if it gives none. ``known`` has the versions known for this request.

        Raises :exc:`~broker_core.plugins.failures.PluginFailed`.
        """
        caller = self._callers[plugin].get(_VERSION)
        if caller is None:
            return None
        if plugin not in known:
            known[plugin], _ = await caller.call(self._words.request_for(request, plugin), check_version)
        return known[plugin]

    async def still(
        self, request: ListingRequest, plugin: str, version: str, answer: TopicListingResult | None = None
    ) -> bool:
        """Whether the plugin gives the same version after its work as before: only then its answer has that version.

        An answer that has the version itself needs no call. If the call fails, the result is false; it counts as any
        other failure of the hook.
        """
        if answer is not None and answer.version == version:
            return True
        try:
            return await self.of(request, plugin, {}) == version
        except ListingFailed:
            return False

    async def all_still(
        self, request: ListingRequest, plugins: Iterable[str], versions: Iterable[str]
    ) -> bool:
        """Whether each of the plugins gives the same version after its work as before."""
        for plugin, version in zip(plugins, versions, strict=True):
            if not await self.still(request, plugin, version):
                return False
        return True

    async def of_all(
        self, request: ListingRequest, plugins: Iterable[str], known: KnownVersions
    ) -> tuple[str, ...] | None:
        """The versions of the plugins; ``None`` if one of them gives none."""
        found = []
        for plugin in plugins:
            version = await self.of(request, plugin, known)
            if version is None:
                return None
            found.append(version)
        return tuple(found)


def check_version(answer: object, _request: ListingRequest) -> tuple[str | None, str]:
    """The version and the word for it. Raises :exc:`TypeError` or :exc:`ValueError` for an invalid one."""
    if answer is None:
        return None, "none"
    if type(answer) is not str:
        raise TypeError(f"its version is a {type(answer).__name__}, not a string or None: write str(version)")
    if len(answer) > _LONGEST:
        raise ValueError(f"its version has {len(answer)} characters, more than {_LONGEST}: give a hash of it")
    return answer, "version"
