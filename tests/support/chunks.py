"""Tiny chunks of listings, so that a few names make many of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from broker_core.listing import chunk_size
from broker_core.listing.chunk_size import ChunkSize

__all__ = ["tiny_chunks"]


@contextmanager
def tiny_chunks(made: int = 200) -> Iterator[None]:
    """Chunks of so many bytes of encoded names."""
    with patch.object(chunk_size, "_USED", ChunkSize(made, 2 * made, made // 4, max(made // 10, 16))):
        yield
