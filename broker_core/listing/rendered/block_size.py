"""How many names are rendered at a time, in bytes: a reader of the pieces may change it between two pieces."""

from __future__ import annotations

from typing import Final

__all__ = ["BLOCK", "BlockSize"]

#: Bytes of the names of a block, about, and the most that a piece has as a rule.
BLOCK: Final = 512 * 1024


class BlockSize:
    """The size of the next block, ``bytes``: less for a reader that is slow, for which pieces wait in memory."""

    __slots__ = ("bytes",)

    def __init__(self, size: int = BLOCK) -> None:
        self.bytes = size
