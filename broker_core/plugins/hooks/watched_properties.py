"""Whether a mask depends on the properties of the request: as its plugin says, or as it turns out.

Lookups carry no properties. What a mask that selects by them would say to a request without any is nothing that the
client's listing was answered by: a topic that the listing showed must not be hidden here, or ``subscribe()`` of the
Java client fails. A plugin that does not say what it depends on may depend on them; whether it does is known once it
was asked, since it has to read them.
"""

from __future__ import annotations

from broker_core.plugin_api.depends_on import is_of_properties
from broker_core.plugin_api.recorded_reads import RecordedProperties
from broker_core.plugin_api.request_properties import NO_PROPERTIES
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["WatchedProperties"]

_HOOK = "broker_core_depends_on"


class WatchedProperties:
    """No properties, for one plugin to ask for. ``depends`` is whether its answer depends on what they are."""

    __slots__ = ("_says", "_was_read", "properties")

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._was_read = False
        self.properties = RecordedProperties(NO_PROPERTIES, self._note)
        self._says: bool | None = None
        if _HOOK in plugin.implementations:
            self._says = any(map(is_of_properties, plugin.depends_on))

    @property
    def depends(self) -> bool:
        """As the plugin says; of one that says nothing, whether it has looked at any up to now."""
        return self._was_read if self._says is None else self._says

    def _note(self, _word: str) -> None:
        self._was_read = True
