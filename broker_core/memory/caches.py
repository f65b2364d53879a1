"""Sizes of the caches of a broker, each under a name, for operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker_core.memory.bounded_cache import BoundedCache

__all__ = ["CacheState", "Caches"]


@dataclass(frozen=True, slots=True)
class CacheState:
    """The number and the bytes of kept values, ``limit`` bytes at the most; 0 is no bound. ``size`` counts its bytes,
    in any thread.
    """

    entries: int
    size: Callable[[], int]
    limit: int


class Caches:
    """The caches of a broker, each named by the part that has it; read on its event loop."""

    def __init__(self) -> None:
        self._read: dict[str, Callable[[], CacheState]] = {}

    def show(self, name: str, read: Callable[[], CacheState]) -> None:
        """Show a cache under this name, in the place of a former one."""
        self._read[name] = read

    def show_bounded(self, name: str, cache: BoundedCache[Any, Any]) -> None:
        """Show a cache that is bounded by itself."""
        self.show(name, lambda: CacheState(len(cache), lambda: cache.nbytes, cache.limit))

    def states(self) -> dict[str, CacheState]:
        """The state of each cache now, by name."""
        return {name: read() for name, read in self._read.items()}
