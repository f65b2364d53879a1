"""Masks of chunks are made once for each, and go with them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest

from broker_core.kafka.acls import compiled_masks
from broker_core.kafka.acls.bindings import Operation
from broker_core.kafka.acls.compiled_masks import CompiledMasks
from broker_core.kafka.acls.name_patterns import SortedNames


class Chunk:
    def __init__(self, *names: str) -> None:
        self.names = pa.array([name.encode() for name in names], pa.large_binary())


class Maker:
    """Shows the names behind ``b``, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(
        self, operation: Operation, names: SortedNames
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        self.asked += 1
        if operation is Operation.READ:
            return None
        return np.array([names.name(row) > b"b" for row in range(names.size)])


def test_a_mask_is_made_once_for_a_chunk_and_an_operation() -> None:
    make = Maker()
    masks = CompiledMasks()
    chunk = Chunk("a", "b", "c", "d", "e", "f", "g", "h", "i")
    for _ in range(2):
        found = masks.mask("ann", Operation.DESCRIBE, chunk, make)
        assert found is not None
        assert found.tolist() == [False, False, *[True] * 7]
        assert masks.mask("ann", Operation.READ, chunk, make) is None
    assert make.asked == 2
    other = masks.mask("ann", Operation.DESCRIBE, Chunk("a"), make)
    assert other is not None
    assert other.tolist() == [False]


def test_few_are_kept_of_however_many_askers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_masks, "_KEPT", 2)
    make, masks, chunk = Maker(), CompiledMasks(), Chunk("a", "b", "c")
    for asker in ("ann", "bob", "ann", "eve", "ann", "bob"):
        found = masks.mask(asker, Operation.DESCRIBE, chunk, make)
        assert found is not None
        assert found.tolist() == [False, False, True]
    assert make.asked == 4  # bob was asked for longest ago when eve came


def test_no_chunk_is_held() -> None:
    masks = CompiledMasks()
    chunk = Chunk("a", "b")
    masks.mask("ann", Operation.DESCRIBE, chunk, Maker())
    gone = weakref.ref(chunk)
    del chunk
    gc.collect()
    assert gone() is None
