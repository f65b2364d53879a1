"""Difficult topic names, and the expected listing of them, one name at a time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import re2
from hypothesis import strategies as st

from broker_core.listing.chunks.block_hashes import crc_of_fields
from broker_core.listing.chunks.build_chunks import chunk_size
from broker_core.listing.listing import Listing, Selection, data_of
from broker_core.listing.listing_hash import topics_hash, utf16_key
from broker_core.names import DOMAINS, Mode, NamespaceName, TopicName
from broker_core.wire.pulsar.messages import pulsar_api_pb2

__all__ = [
    "NAMESPACE",
    "assert_listing",
    "assert_selection",
    "decoded_topics",
    "full_names",
    "listing_of",
    "local_names",
    "matched_form",
    "matching",
    "persistent",
    "visible",
]

NAMESPACE = NamespaceName.parse("t/n")

# Partitions and what only looks like them, both sides of the surrogates, system topics, lengths around a varint's.
_PIECES = [
    *("a", "b", "k", "K", "\u212a", "é", ".", ",", "\n", "1", "٣", "\ue000", "\uffee", "😀", "𐀀"),
    *("-partition-", "-partition-0", "-partition-10", "-partition-007", "-partition-2147483648"),
    *("x" * 100, "x" * 101, "__change_events", "__transaction_pending_ack"),
]


@cache
def local_names() -> st.SearchStrategy[str]:
    """Valid local names of topics."""
    hostile = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join)
    any_text = st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12
    )
    return st.one_of(hostile, hostile, any_text)


@cache
def full_names(mode: Mode = Mode.ALL) -> st.SearchStrategy[str]:
    """Full names of topics in :data:`NAMESPACE` that a listing of ``mode`` takes."""
    domains = [domain for domain in DOMAINS if mode.lists(domain)]
    return st.builds("{}://{}/{}".format, st.sampled_from(domains), st.just(NAMESPACE), local_names())


def visible(names: Iterable[str]) -> list[str]:
    """What a listing of these names has, in its order."""
    return sorted({name for name in names if not TopicName.parse(name).is_system}, key=utf16_key)


def matched_form(name: str) -> str:
    """What a pattern has to match of this full name."""
    topic = TopicName.parse(name).partitioned_name
    return f"{topic.namespace}/{topic.local}"


def persistent(*names: str) -> list[str]:
    """Full names of persistent topics."""
    return [f"persistent://{NAMESPACE}/{name}" for name in names]


def listing_of(names: list[str], mode: Mode = Mode.ALL) -> Listing:
    return Listing.from_names(NAMESPACE, mode, names)


def matching(text: str, names: list[str]) -> list[str]:
    """The full names that RE2 itself matches."""
    return [name for name in names if re2.fullmatch(text, matched_form(name)) is not None]


def decoded_topics(body: bytes | memoryview) -> list[str]:
    """The topics of a response with these encoded fields, by the protobuf library."""
    response = pulsar_api_pb2.CommandGetTopicsOfNamespaceResponse()
    response.MergeFromString(b"\x08\x01" + bytes(body))
    return list(response.topics)


def assert_selection(selection: Selection, names: list[str]) -> None:
    """All that a selection says of itself is said of exactly these full names."""
    body = selection.body()
    assert decoded_topics(body) == names
    assert len(body) == selection.fields_size
    reader = selection.reader()
    assert reader.left == len(body)
    read, size = bytearray(), max(7, len(body) // 100)
    while reader.left:
        read += reader.read(size)
    assert read == body
    assert (reader.left, bytes(reader.read(7))) == (0, b"")
    assert len(selection) == len(names)
    assert selection.names.to_pylist() == names
    assert selection.topics_hash == topics_hash(names)
    assert selection.hash_known


def assert_listing(listing: Listing, names: list[str]) -> None:
    """The columns of a listing are those of exactly these full names, which are in its order."""
    assert len(listing) == len(names)
    assert_selection(listing.all(), names)
    assert listing.topics_hash == topics_hash(names)
    start = 0
    for chunk in data_of(listing).chunks:
        own = names[start : start + chunk.size]
        start += chunk.size
        own_forms = list(map(matched_form, own))
        forms = chunk.forms.between(0, chunk.size).to_pylist()
        rows = chunk.forms.rows(np.arange(chunk.size)).tolist()
        assert forms == [own_forms[row] for row in rows]
        assert forms == sorted(forms, key=str.encode)
        # Partitions of a topic are in the order of their numbers.
        assert rows == sorted(rows, key=lambda row: (own_forms[row].encode(), _number(own[row])))
        places = chunk.forms.places(np.arange(chunk.size)).tolist()
        assert [rows[place] for place in places] == list(range(chunk.size))
        assert chunk.has_newline or not any("\n" in form for form in forms)
        assert chunk.crc == crc_of_fields(chunk.column(0, chunk.size))
        assert chunk.fields_size <= chunk_size().most or chunk.size == 1
    assert start == len(names)


def _number(name: str) -> int:
    return TopicName.parse(name).partition
