"""Detection whether a mask depends on the properties of the request: as its plugin declares, or by what it reads.

Lookups carry no properties. A mask that selects by properties would answer a request without any otherwise than the
client's listing: a topic that the listing showed must not be hidden here, or ``subscribe()`` of the Java client fails.
A plugin that does not declare its dependencies may depend on properties; whether it does is known after its call, since
it has to read them.
"""

from __future__ import annotations

from broker_core.plugin_api import NO_PROPERTIES, RecordedProperties, is_of_properties
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["WatchedProperties"]

_HOOK = "broker_core_depends_on"


class WatchedProperties:
    """Empty properties for one plugin, which record being read. ``depends`` is whether its answer depends on them."""

    __slots__ = ("_says", "_was_read", "properties")

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._was_read = False
        self.properties = RecordedProperties(NO_PROPERTIES, self._note)
        self._says: bool | None = None
        if _HOOK in plugin.implementations:
            self._says = any(map(is_of_properties, plugin.depends_on))

    @property
    def depends(self) -> bool:
        """Whether the plugin declares the dependency; if it declares nothing, whether it has read any so far."""
        return self._was_read if self._says is None else self._says

    def _note(self, _word: str) -> None:
        self._was_read = True
