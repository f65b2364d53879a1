"""Forged objects that imitate the core's types: refused at every entry, with no effect on others."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, ListingBuilder, ListingRequest, Mode, TopicListingResult
from broker_core.errors import InvalidListing
from broker_core.patterns import TopicsPattern, compile_pattern
from tests.support.memory_lister import MemoryLister
from tests.support.plugin_answers import NAMESPACE, A, B, C, answering, topics
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused

ALL = [A, B, C]
TEXT = "t/n/[ab]"


class Likeness:
    """Has all that a compiled pattern has, and says that everything matches."""

    def __init__(self, **facts: Any) -> None:
        real = compile_pattern(TEXT)
        for name in (*TopicsPattern.__slots__[:-1], "supported"):
            setattr(self, name, getattr(real, name))
        vars(self).update(facts)

    def match_column(self, column: Any) -> Any:
        return pa.array([True] * len(column))


def half_made() -> Any:
    return object.__new__(TopicsPattern)


def dressed() -> Any:
    """An object with the fields of a pattern, which is given the class of one if Python lets it."""
    slots = tuple(slot for slot in TopicsPattern.__slots__ if slot != "__weakref__")
    made: Any = object.__new__(type("Forged", (TopicsPattern.__mro__[1],), {"__slots__": slots}))
    for name in slots:
        object.__setattr__(made, name, getattr(compile_pattern(".*"), name))
    object.__setattr__(made, "text", TEXT)
    try:
        made.__class__ = TopicsPattern
    except TypeError:
        return made
    return made


FORGED: dict[str, Callable[[], Any]] = {
    "matches all": lambda: Likeness(match_all=True),
    "scans": Likeness,
    "half made": half_made,
    "of another class": dressed,
    "a text": lambda: TEXT,
}


def encoded() -> EncodedNames:
    return EncodedNames.of(NAMESPACE, "persistent", ["a", "b", "c"])


WAYS: dict[str, Callable[[Any], Any]] = {
    "a listing": lambda forged: Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL).matching(forged),
    "a selection": lambda forged: (
        Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL).rows([0, 2]).matching(forged)
    ),
    "what is known": lambda forged: (
        Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL).all().known_matching(forged)
    ),
    "whether it is quick": lambda forged: (
        Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL).all().matching_is_quick(forged)
    ),
    "encoded names": lambda forged: encoded().matching(forged),
    "encoded names, of many": lambda forged: list(encoded().matching_each([forged])),
    "a builder": lambda forged: ListingBuilder(
        ListingRequest(Listing.from_names(NAMESPACE, Mode.ALL, []).namespace, pattern=forged)
    ),
}


@pytest.mark.parametrize("forged", FORGED)
@pytest.mark.parametrize("way", WAYS)
def test_a_pattern_is_what_was_compiled(way: str, forged: str) -> None:
    with pytest.raises(TypeError, match="compile_pattern"):
        WAYS[way](FORGED[forged]())


async def test_a_listing_of_others_remembers_no_forged_match() -> None:
    """A plugin asks the rest of the chain for its listing, and matches that with what is no pattern."""
    refused: list[str] = []

    async def poison(request: ListingRequest) -> None:
        if "poison" in request.properties:
            rest = await request.rest(pattern=None)
            try:
                rest.selection.listing.matching(Likeness())  # type: ignore[arg-type]
            except TypeError as error:
                refused.append(str(error))

    plugins = {"liar": PluginOf(list_topics=poison)}
    async with serving(MemoryLister(ALL), plugins) as s, await s.client() as client:
        await client.ask(NAMESPACE, properties={"poison": "1"})
        said = await client.ask(NAMESPACE, pattern=TEXT)
        assert (topics(said), said.filtered) == ([A, B], True)
    assert len(refused) == 1


MASKS: dict[str, Any] = {
    "rows": np.array([2, 1, 0]),
    "ones and zeros": np.array([1, 1, 0], np.uint8),
    "objects": np.array([True, False, True], object),
    "a list": [True, False, True],
    "an Arrow array": pa.array([True, False, True]),
}


@pytest.mark.parametrize("mask", MASKS)
def test_a_mask_is_of_booleans(mask: str) -> None:
    for listing in (
        Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL),
        Listing.from_encoded(NAMESPACE, Mode.PERSISTENT, encoded().fields),
    ):
        with pytest.raises(TypeError, match="a mask is a numpy array of bool"):
            listing.all().mask(MASKS[mask])


def test_a_mask_is_read_once() -> None:
    keep = np.array([True, False, True])
    selection = Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL).all().mask(keep)
    keep[:] = [False, True, False]
    assert selection.names.to_pylist() == [A, C]


async def test_rows_in_the_place_of_a_mask_are_the_plugins_failure() -> None:
    def answer(request: ListingRequest) -> TopicListingResult:
        listing = Listing.from_encoded(
            request.namespace, request.mode, pa.array([b"\x12\x01A"] * 3, pa.large_binary())
        )
        return TopicListingResult.success(listing.all().mask(np.array([2, 1, 0])), filtered=True)

    async with serving(MemoryLister(ALL), {"liar": answering(answer)}) as s, await s.client() as client:
        with pytest.raises(Refused, match="plugin 'liar' failed"):
            await client.ask(NAMESPACE, pattern=TEXT)


def changing(*, mapped: bool) -> tuple[Listing, bytearray, Any]:
    """A listing of memory that Arrow takes for read-only, and what writes it."""
    fields = encoded().fields
    data = bytearray(fields.buffers()[2].to_pybytes())
    offsets = np.frombuffer(fields.buffers()[1], np.int64).copy()
    shown = offsets.view()
    shown.flags.writeable = False
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 3, [None, pa.py_buffer(shown), pa.py_buffer(memoryview(data).toreadonly())]
    )
    assert not any(buffer.is_mutable for buffer in column.buffers() if buffer is not None)
    return Listing.from_encoded(NAMESPACE, Mode.PERSISTENT, column, mapped=mapped), data, offsets


@pytest.mark.parametrize("mapped", [False, True])
async def test_memory_that_only_looks_read_only_is_copied(*, mapped: bool) -> None:
    listing, data, offsets = changing(mapped=mapped)
    plugin = answering(lambda _: TopicListingResult.success(listing))
    async with serving(MemoryLister(ALL), {"liar": plugin}) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == ALL
        data[:] = bytes(len(data))
        offsets[:] = [0, 1 << 40, 5, 1 << 50]
        for pattern, wanted in ((None, ALL), (TEXT, [A, B]), ("t/n/.*c", [C])):
            assert topics(await client.ask(NAMESPACE, pattern=pattern)) == wanted
    assert listing.nbytes > len(data)


def test_a_mapped_file_with_a_name_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "fields"
    fields = encoded().fields
    path.write_bytes(fields.buffers()[2].to_pybytes())
    with pa.memory_map(str(path)) as file:
        data = file.read_buffer()
    column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 3, [None, fields.buffers()[1], data])
    with pytest.warns(RuntimeWarning, match="still has a name"):
        Listing.from_encoded(NAMESPACE, Mode.PERSISTENT, column, mapped=True)


def views(offset: int) -> Any:
    """A column of views whose one name is said to be at ``offset`` of its memory."""
    name = A.encode()
    view = struct.pack("<i4sii", len(name), name[:4], 0, offset)
    return pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(view), pa.py_buffer(name)])


def far(kind: Any) -> Any:
    """A column one of whose offsets is far outside of its memory."""
    offsets = np.array([0, 1 << 30, 5], np.int64 if "large" in str(kind) else np.int32)
    return pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(offsets), pa.py_buffer(A.encode())])


CRASHING: dict[str, Callable[[], Any]] = {
    "a view": lambda: views(1 << 28),
    "a view before": lambda: views(-(1 << 28)),
    "string": lambda: far(pa.string()),
    "large_string": lambda: far(pa.large_string()),
    "chunks": lambda: pa.chunked_array([far(pa.string()), far(pa.string())]),
    "a dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int32()), far(pa.string()), safe=False
    ),
}


@pytest.mark.parametrize("column", CRASHING)
async def test_a_column_that_points_outside_of_its_memory_is_refused(column: str) -> None:
    plugin = answering(lambda _: TopicListingResult.success(CRASHING[column]()))
    async with serving(MemoryLister(ALL), {"liar": plugin}) as s, await s.client() as client:
        with pytest.raises(Refused, match="plugin 'liar' returned a bad topic"):
            await client.ask(NAMESPACE)
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL)
    for work in (listing.positions, listing.locate, lambda names: listing.with_changes(names, [])):
        with pytest.raises(InvalidListing):
            work(CRASHING[column]())


def test_views_that_are_sound_are_taken() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, views(0))
    assert listing.names.to_pylist() == [A]
