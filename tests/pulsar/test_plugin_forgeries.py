"""Objects that only look like the core's own: refused by each way into it, and nobody else ever meets what they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, ListingBuilder, ListingRequest, Mode, TopicListingResult
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
