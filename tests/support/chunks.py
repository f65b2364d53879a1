"""Tiny chunks of listings, so that a few names make many of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from broker_core.listing import listing_data
from broker_core.listing.chunks import build_chunks
from broker_core.listing.chunks.build_chunks import ChunkSize
from broker_core.listing.chunks.chunk import Chunk

__all__ = ["first_keys_read", "tiny_chunks"]


@contextmanager
def tiny_chunks(made: int = 200) -> Iterator[None]:
    """Chunks of so many bytes of encoded names."""
    with patch.object(build_chunks, "_USED", ChunkSize(made, 2 * made, made // 4, max(made // 10, 16))):
        yield


def first_keys_read(monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """The chunks whose first name a listing has read from here on, in the order of reading."""
    chunks: list[Chunk] = []
    read = listing_data._first_key

    def reading(chunk: Chunk) -> bytes:
        chunks.append(chunk)
        return read(chunk)

    monkeypatch.setattr(listing_data, "_first_key", reading)
    return chunks
