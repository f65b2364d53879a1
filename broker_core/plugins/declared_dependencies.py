"""The dependencies of plugins' answers: declared ones, and fields that plugins were seen to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import structlog

from broker_core.immutable import copied
from broker_core.plugin_api import ListingRequest, RequestServices, recorded_asker, undeclared
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["DeclaredDependencies"]

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
