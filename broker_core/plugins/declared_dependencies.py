"""What plugins' answers depend on: what they declare, and what they are seen to read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

import structlog

from broker_core.immutable.copies import copied
from broker_core.plugin_api.depends_on import undeclared
from broker_core.plugin_api.listing_request import ListingRequest, RequestServices
from broker_core.plugin_api.recorded_reads import recorded_asker
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["DeclaredDependencies"]

log = structlog.get_logger(__name__)


class DeclaredDependencies:
    """The words of each plugin, which only become more. Adding is for any thread.

    A plugin that asks the rest of the chain depends on what all behind it depend on. One that does not declare
    ``principal`` is watched: what is kept of its answers would cross principals if it reads the role all the same. So
    is one that declares ``client`` as it was before ``address`` had a word of its own. What a watched plugin reads of
    the asker is added, before anything of its answer is kept.
    """

    def __init__(self, plugins: Iterable[LoadedPlugin]) -> None:
        self._declared = {plugin.name: plugin.depends_on for plugin in plugins}
        self._added: dict[str, set[str]] = {name: set() for name in self._declared}
        self._told: set[str] = set()

    def of(self, plugin: str) -> frozenset[str]:
        """What answers of the plugin depend on, as far as is known."""
        added = self._added[plugin]
        return self._declared[plugin] | added if added else self._declared[plugin]

    def added(self, plugin: str) -> frozenset[str]:
        """The dependencies that a plugin does not declare itself."""
        return frozenset(self._added[plugin])

    def add(self, plugin: str, words: Collection[str]) -> None:
        """The plugin depends on these too from now on."""
        self._added[plugin] |= undeclared(words, self._declared[plugin])

    def was_read(self, plugin: str, word: str) -> None:
        """The plugin has read a field of ``word``; told once where it does not declare that."""
        if undeclared({word}, self.of(plugin)):
            self.add(plugin, {word})
            log.warning(
                "plugin reads what it does not declare: its answers are kept by that too",
                plugin=plugin,
                word=word,
            )

    def asked(
        self, request: ListingRequest, plugin: str, services: RequestServices | None = None
    ) -> ListingRequest:
        """The request as the plugin is asked it: it tells where the plugin may read what it does not declare."""
        changes: dict[str, object] = {} if services is None else {"services": services}
        words = self.of(plugin)
        if "principal" not in words or ("client" in words and "address" not in words):
            changes["asker"] = recorded_asker(request.asker, partial(self.was_read, plugin))
        return copied(request, **changes) if changes else request
