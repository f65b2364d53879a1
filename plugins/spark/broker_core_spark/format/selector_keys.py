"""The keys of all selectors of a namespace and domain: made once, however many segments there are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format.canonical_question import KEY_BYTES

__all__ = ["NO_SELECTORS", "SelectorKeys", "key_order", "split_keys"]


def split_keys(keys: Array) -> list[bytes]:
    """The keys of a column, 16 bytes each."""
    data = keys.tobytes()
    return [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]


def key_order(keys: Array) -> tuple[Array, Array]:
    """The stable order of keys (16 bytes each), and the positions in it at which each different key begins."""
    halves = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
    order = np.lexsort((halves[:, 1], halves[:, 0]))  # stable
    halves = halves[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (halves[1:] != halves[:-1]).any(axis=1)
    return order, np.flatnonzero(begins)


@dataclass(frozen=True, slots=True)
class SelectorKeys:
    """``keys`` (16 bytes each), and their ``digest``: SHA-256 over the sorted keys, 64 hex digits."""

    keys: frozenset[bytes]
    digest: str

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> SelectorKeys:
        """The selector keys of ``keys``, which may have any order and repeat."""
        every = frozenset(keys)
        return cls(every, hashlib.sha256(b"".join(sorted(every))).hexdigest())


#: The keys of a namespace and domain that no question is about.
NO_SELECTORS = SelectorKeys.of(())
