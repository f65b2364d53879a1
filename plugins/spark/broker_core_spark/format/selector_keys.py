"""The keys of all selectors of a namespace and domain: made once, however many segments there are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from broker_core_spark.format.canonical_question import KEY_BYTES

__all__ = ["NOTHING_ASKED", "SelectorKeys", "split_keys"]


def split_keys(data: bytes) -> list[bytes]:
    """The keys that follow each other in ``data``."""
    return [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]


@dataclass(frozen=True, slots=True)
class SelectorKeys:
    """``keys`` (16 bytes each), and their ``digest``: SHA-256 over the sorted keys, 64 hex digits."""

    keys: frozenset[bytes]
    digest: str

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> SelectorKeys:
        """Selector keys of these, in any order; one may come twice."""
        every = frozenset(keys)
        return cls(every, hashlib.sha256(b"".join(sorted(every))).hexdigest())


#: The keys of a namespace and domain that no question is about.
NOTHING_ASKED = SelectorKeys.of(())
