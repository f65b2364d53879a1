"""Masks of chunks of topics, kept as long as the chunks are: each listing asks for the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker_core.kafka.acls.bindings import Operation
from broker_core.kafka.acls.name_patterns import SortedNames

__all__ = ["CompiledMasks", "NamedChunk"]


class NamedChunk(Protocol):
    """Topics by their distinct names, sorted by bytes; immutable, and known by its identity."""

    @property
    def names(self) -> pa.LargeBinaryArray: ...


class CompiledMasks:
    """The masks of one asker: a bit is kept for each topic and operation that was asked for. On one thread."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[NamedChunk, dict[Operation, npt.NDArray[np.uint8] | None]] = (
            WeakKeyDictionary()
        )

    def mask(
        self,
        operation: Operation,
        chunk: NamedChunk,
        make: Callable[[Operation, SortedNames], npt.NDArray[np.bool_] | None],
    ) -> npt.NDArray[np.bool_] | None:
        """What ``make`` makes of the chunk's names: a mask, or ``None`` for all of them."""
        kept = self._kept.get(chunk)
        if kept is None:
            kept = self._kept[chunk] = {}
        if operation not in kept:
            made = make(operation, SortedNames(chunk.names))
            kept[operation] = None if made is None else np.packbits(made)
        packed = kept[operation]
        return None if packed is None else np.unpackbits(packed, count=len(chunk.names)).view(np.bool_)
