"""Whether a mask depends on the properties of the request: as its plugin says, or as it turns out.

Lookups carry no properties. What a mask that selects by them would say to a request without any is nothing that the
client's listing was answered by: a topic that the listing showed must not be hidden here, or ``subscribe()`` of the
Java client fails. A plugin that does not say what it depends on may depend on them; whether it does is known once it
was asked, since it has to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from broker_core.plugins.registry import LoadedPlugin

__all__ = ["WatchedProperties"]

_HOOK = "broker_core_depends_on"
_WORD = "properties"
_ONE_OF_THEM = "property:"


class WatchedProperties:
    """No properties, for one plugin to ask for. ``depends`` is whether its answer depends on what they are."""

    __slots__ = ("_read", "_says", "properties")

    def __init__(self, plugin: LoadedPlugin) -> None:
        self._read = _Read()
        self.properties = MappingProxyType(self._read)
        self._says: bool | None = None
        if _HOOK in plugin.implementations:
            self._says = any(word == _WORD or word.startswith(_ONE_OF_THEM) for word in plugin.depends_on)

    @property
    def depends(self) -> bool:
        """As the plugin says; of one that says nothing, whether it has looked at any up to now."""
        return self._read.was_read if self._says is None else self._says


class _Read(Mapping[str, str]):
    """An empty mapping that knows whether anybody looked into it."""

    __slots__ = ("was_read",)

    def __init__(self) -> None:
        self.was_read = False

    def __getitem__(self, key: str) -> str:
        self.was_read = True
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        self.was_read = True
        return iter(())

    def __len__(self) -> int:
        self.was_read = True
        return 0

    def __contains__(self, key: object) -> bool:
        self.was_read = True
        return False
