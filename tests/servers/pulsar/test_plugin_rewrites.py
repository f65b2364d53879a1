"""Answers whose parts say one thing when they are checked and another later: the truth goes out, or a failure that
names the plugin, counts, and is what its ``on_failure`` says."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core import Listing, ListingRequest, Mode, Page, Position, TopicListingResult
from broker_core.plugin_api.listing_result import AnswerKind
from tests.support.memory_lister import MemoryLister
from tests.support.plugin_answers import NAMESPACE, STORED, A, B, C, answering, topics
from tests.support.pulsar_serving import serving
from tests.support.raw_client import Refused

ALL = [A, B, C]
HASH = "0badc0de"


class Whole(int):
    """A number that is within all bounds, and then another one."""

    __slots__ = ()

    def __le__(self, _other: object) -> bool:
        return True

    def __ge__(self, _other: object) -> bool:
        return True

    def __int__(self) -> int:
        return 1000

    def __index__(self) -> int:
        return 1000

    def __add__(self, _other: object) -> int:
        return 1000

    __radd__ = __add__


class Same(str):
    """A text that is equal to all others."""

    __slots__ = ()

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    __hash__ = str.__hash__


def whole() -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, ALL)


@pytest.mark.parametrize(
    "of", [whole(), whole().all(), whole().rows([0, 2])], ids=["listing", "slice", "rows"]
)
def test_bounds_are_plain_numbers(of: Any) -> None:
    assert of.range(Whole(0), Whole(2)).names.to_pylist() == of.names.to_pylist()[:2]
    for low, high in ((Whole(0), Whole(9)), (Whole(2), Whole(1)), (Whole(-1), Whole(2))):
        with pytest.raises(IndexError):
            of.range(low, high)
    for none in (0.5, 2.0, "2", None):
        with pytest.raises(TypeError):
            of.range(0, none)
    assert [len(batch) for batch in of.batches("name", rows=Whole(2))] == [2, 1][: len(of) - 1]
    for rows in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            next(of.batches("name", rows=rows))


def test_positions_and_pages_hold_plain_values_that_nobody_can_write() -> None:
    position = Position(Same(A), Whole(3))
    page = Page(position, Whole(5))
    assert (type(position.base), type(position.partition), type(page.limit)) == (str, int, int)
    for made, name in ((position, "base"), (position, "partition"), (page, "start"), (page, "limit")):
        with pytest.raises(AttributeError):
            object.__setattr__(made, name, None)
    with pytest.raises(ValueError, match="partition"):
        Position(A, Whole(-7))
    with pytest.raises(ValueError, match="limit"):
        Page(None, Whole(0))
    with pytest.raises(TypeError):
        Page(object.__new__(type("Later", (Position,), {})))


@pytest.mark.parametrize("held", [None, "01234567"])
async def test_unchanged_is_compared_by_its_characters(held: str | None) -> None:
    plugin = answering(lambda _: TopicListingResult.unchanged(Same(HASH)))
    async with serving(MemoryLister(STORED), {"liar": plugin}) as s, await s.client() as client:
        with pytest.raises(Refused, match="plugin 'liar' gave a wrong answer"):
            await client.ask(NAMESPACE, topics_hash=held)


REWRITTEN: dict[str, dict[str, Any]] = {
    "a version": {"version": [1]},
    "a version that is a kind of text": {"version": Same("1")},
    "whether it is owned": {"owned": "x"},
    "whether it is filtered": {"filtered": "no"},
    "a hash": {"topics_hash": 5},
    "a kind": {"kind": "success"},
    "unchanged": {"kind": AnswerKind.UNCHANGED, "topics_hash": Same(HASH)},
    "no topics": {"topics": None},
    "a number of topics": {"topics": 5},
    "a text of topics": {"topics": "abc"},
    "details": {"details": 5},
    "a next page": {"next": 5},
    "a refusal": {"kind": AnswerKind.REFUSED},
}


@pytest.mark.parametrize("field", REWRITTEN)
async def test_a_field_of_another_type_is_the_plugins_failure(field: str) -> None:
    def answer(_request: ListingRequest) -> TopicListingResult:
        result = TopicListingResult.success(ALL)
        for name, value in REWRITTEN[field].items():
            object.__setattr__(result, name, value)
        return result

    async with serving(MemoryLister(STORED), {"liar": answering(answer)}) as s, await s.client() as client:
        for _ in range(5):
            with pytest.raises(Refused, match="plugin 'liar' gave a wrong answer"):
                await client.ask(NAMESPACE)
        with pytest.raises(Refused, match="it failed 5 times in a row"):
            await client.ask(NAMESPACE)
    tables = {"liar": {"on_failure": "next"}}
    async with (
        serving(MemoryLister(STORED), {"liar": answering(answer)}, tables=tables) as s,
        await s.client() as client,
    ):
        assert topics(await client.ask(NAMESPACE)) == STORED


def test_a_listing_has_nothing_public_that_takes_from_others() -> None:
    assert not {"forget", "column_bytes"} & set(dir(Listing))
