"""A stream of names makes the chunks that all of them at once would make: the same names with their values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing.chunks.build_chunks import ChunkStream, build_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.names import PERSISTENT, NamespaceName
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples

NAMESPACE = NamespaceName("a", "b")
TEXT = pa.large_string()

BASES = st.text(st.sampled_from("ab-!\u007fé\ue000\uffee😀"), min_size=1, max_size=4) | st.just(
    "__change_events"
)
TOPICS = st.dictionaries(BASES, st.sampled_from([[-1], [0, 1], [-1, 0, 2, 10]]), max_size=40)


def names_of(chunks: Sequence[Chunk]) -> list[str]:
    return [name for chunk in chunks for name in chunk.names(0, chunk.size).to_pylist()]


def values_of(chunks: Sequence[Chunk]) -> list[str | None]:
    return [value for chunk in chunks for value in chunk.properties["team"].column().to_pylist()]


@settings(max_examples=examples(50))
@given(TOPICS, st.integers(1, 20))
def test_it_equals_all_at_once(topics: dict[str, list[int]], block: int) -> None:
    bases = sorted(topics, key=str.encode)
    expanded = {
        base: [base if index < 0 else f"{base}-partition-{index}" for index in topics[base]] for base in bases
    }
    with tiny_chunks(100):
        stream = ChunkStream(NAMESPACE, PERSISTENT, ("team",))
        ends = [*range(0, len(bases), block), len(bases)]
        for low, high in pairwise(ends):
            some = bases[low:high]
            names = pa.array([name for base in some for name in expanded[base]], TEXT)
            values = pa.array([f"of {base}" for base in some for _ in expanded[base]], TEXT)
            stream.add(names, {"team": values}, some[-1] if high < len(bases) else None)
        chunks = stream.chunks()
        names = pa.array([name for each in expanded.values() for name in each], TEXT)
        values = pa.array([f"of {base}" for base in bases for _ in expanded[base]], TEXT)
        expected = build_chunks(NAMESPACE, names, None, {PERSISTENT: {"team": values}})
    assert names_of(chunks) == names_of(expected)
    assert values_of(chunks) == values_of(expected)
    assert all(chunk.size for chunk in chunks)


def test_few_names_wait_at_a_time() -> None:
    """What is made of the names that came needs no more memory than a few chunks."""
    with tiny_chunks(2000):
        stream = ChunkStream(NAMESPACE, PERSISTENT)
        for first in range(0, 2000, 20):
            block = [f"t-{number:05d}" for number in range(first, first + 20)]
            stream.add(pa.array(block, TEXT), {}, block[-1])
            assert sum(len(names) for names in stream._names) < 300
        chunks = stream.chunks()
    assert names_of(chunks) == [f"persistent://a/b/t-{number:05d}" for number in range(2000)]


def test_a_small_end_is_joined_with_what_is_before_it() -> None:
    with tiny_chunks(2000):
        stream = ChunkStream(NAMESPACE, PERSISTENT)
        block = [f"t-{number:05d}" for number in range(200)]
        stream.add(pa.array(block, TEXT), {}, block[-1])
        before = len(stream._chunks)
        stream.add(pa.array(["u"], TEXT), {}, None)
        chunks = stream.chunks()
    assert len(chunks) == before > 1
    assert names_of(chunks)[-1] == "persistent://a/b/u"


def test_nothing_makes_no_chunk() -> None:
    assert ChunkStream(NAMESPACE, PERSISTENT).chunks() == []
    stream = ChunkStream(NAMESPACE, PERSISTENT)
    stream.add(pa.array(["__change_events"], TEXT), {}, None)
    assert stream.chunks() == []
