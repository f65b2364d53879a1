"""The size of chunks: one to four megabytes with all that is derived from the names."""

from __future__ import annotations

from broker_core.listing.chunks.build_chunks import chunk_size
from broker_core.listing.listing import data_of
from tests.support.topics import listing_of, persistent


def test_the_sizes_fit_each_other() -> None:
    wanted = chunk_size()
    # What is cut gives chunks that are not joined at once, and what is joined is not cut at once.
    assert wanted.least < wanted.most // 3
    assert wanted.made + wanted.least <= wanted.most
    shortest = len("persistent://a/b/c") + 2
    assert wanted.rows // 2 * shortest > wanted.least


def test_a_chunk_takes_at_most_four_megabytes() -> None:
    chunks = data_of(
        listing_of(
            persistent(*(f"some-topic-{number:06}-partition-{number % 3}" for number in range(60_000)))
        )
    ).chunks
    assert len(chunks) > 1
    for chunk in chunks:
        assert len(chunk.forms) == chunk.size  # the largest thing that is derived
        _ = chunk.blocks
        assert chunk.column_bytes <= 4 * 1024 * 1024
        assert chunk.nbytes <= 4 * 1024 * 1024
