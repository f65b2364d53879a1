"""Dependencies of plugins' answers: declared words, fields read, versions.

A version (``broker_core_version``) is given before the work, and requested once for each request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import structlog

from broker_core.errors import ListingFailed
from broker_core.immutable import copied
from broker_core.plugin_api import (
    ListingRequest,
    RequestServices,
    TopicListingResult,
    recorded_asker,
    undeclared,
)
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["DeclaredDependencies", "KnownVersions", "VersionHook", "check_version"]

log = structlog.get_logger(__name__)


class DeclaredDependencies:
    """The words for each plugin's dependencies, which only grow. Adding is for any thread.

    A plugin that asks the rest of the chain depends on everything that later plugins depend on. A plugin that does not
    declare ``principal`` is watched: its kept answers would cross principals if it reads the role all the same. So is
    one that declares ``client`` as it was before ``address`` had a word of its own. Fields of the asker that a watched
    plugin reads are added before any answer is kept.
    """

    def __init__(self, plugins: Iterable[LoadedPlugin]) -> None:
        self._declared = {plugin.name: plugin.depends_on for plugin in plugins}
        self._added: dict[str, set[str]] = {name: set() for name in self._declared}
        self._warned: set[str] = set()

    def of(self, plugin: str) -> frozenset[str]:
        """The known dependencies of the plugin's answers."""
        added = self._added[plugin]
        return self._declared[plugin] | added if added else self._declared[plugin]

    def add(self, plugin: str, words: Collection[str]) -> None:
        """Add dependencies of a plugin."""
        self._added[plugin] |= undeclared(words, self._declared[plugin])

    def was_read(self, plugin: str, word: str) -> None:
        """Note that the plugin has read a field of ``word``; it is logged once if the plugin does not declare it."""
        if undeclared({word}, self.of(plugin)):
            self.add(plugin, {word})
            log.warning(
                "plugin reads what it does not declare: its answers are kept by that too",
                plugin=plugin,
                word=word,
            )

    def request_for(
        self, request: ListingRequest, plugin: str, services: RequestServices | None = None
    ) -> ListingRequest:
        """The request for the plugin; it records fields that the plugin reads if it may read undeclared ones."""
        changes: dict[str, object] = {} if services is None else {"services": services}
        words = self.of(plugin)
        if "principal" not in words or ("client" in words and "address" not in words):
            changes["asker"] = recorded_asker(request.asker, partial(self.was_read, plugin))
        return copied(request, **changes) if changes else request


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
