"""False claims of plugins by any way: found and counted; the right answer is sent, or an error."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core import (
    EncodedNames,
    Listing,
    ListingBuilder,
    ListingRequest,
    Mode,
    NamespaceName,
    Selection,
    TopicListingResult,
)
from broker_core.listing.listing_hash import topics_hash
from broker_core.patterns import TopicsPattern, compile_pattern
from tests.support.memory_lister import MemoryLister
from tests.support.plugin_answers import NAMESPACE, STORED, A, B, C, answering, topics
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Refused

ALL = [A, B, C]
PATTERN = "t/n/[ab]"
MADE_UP = "0badc0de"
Lie = Callable[[ListingRequest], Any]


def names_of(request: ListingRequest, *local: str) -> list[str]:
    return [f"persistent://{request.namespace}/{name}" for name in local]


def whole(request: ListingRequest) -> Listing:
    return Listing.from_names(request.namespace, request.mode, ALL)


def encoded(request: ListingRequest, **keywords: Any) -> Listing:
    fields = EncodedNames.of(request.namespace, "persistent", ["a", "b", "c"]).fields
    return Listing.from_encoded(request.namespace, request.mode, fields, **keywords)


def built_for_another(request: ListingRequest) -> Selection:
    builder = ListingBuilder(ListingRequest(request.namespace, request.mode, compile_pattern("t/n/.*")))
    builder.add(ALL)
    return builder.finish()


def written_over(made: Any) -> Any:
    """The object, after all that a program can write into it was written."""
    forged = compile_pattern(".*")
    for name in {
        *dir(made),
        "_data",
        "_part",
        "_listing",
        "_making",
        "_facts",
        "pattern",
        "part",
        "text",
        "__dict__",
    }:
        for value in (forged, PATTERN, MADE_UP, True, 0, ALL):
            try:
                object.__setattr__(made, name, value)
            except (AttributeError, TypeError):
                continue
            pytest.fail(f"{name} of a {type(made).__name__} could be written")
    return made


def built_and_written_over(request: ListingRequest) -> Selection:
    builder = written_over(ListingBuilder(ListingRequest(request.namespace, request.mode)))
    builder.add(ALL)
    selection: Selection = written_over(builder.finish())
    return selection


def given_rows_and_changed(request: ListingRequest) -> Selection:
    rows = np.array([0, 1])
    listing = Listing.from_names(request.namespace, request.mode, [*ALL, *names_of(request, "d", "e")])
    selection = listing.rows(rows)
    before = selection.topics_hash
    rows[:] = [2, 4]
    assert selection.topics_hash == before
    return listing.rows(np.array([0, 1, 2]))


def memory_written(request: ListingRequest) -> Selection:
    """All memory that a selection hands out, written if it can be."""
    listing = Listing.from_names(request.namespace, request.mode, [*ALL, *names_of(request, "d")])
    selection = listing.rows(np.array([0, 1, 2]))
    gathered = listing.rows(np.array([0, 2]))
    names = listing.names.to_pylist()
    columns = [
        selection.column(),
        next(selection.batches("field"))["field"],
        listing.all().column(),
        selection.names,
    ]
    for buffer in (buffer for column in columns[:3] for buffer in column.buffers() if buffer is not None):
        assert not buffer.is_mutable
    shown = gathered.names.to_pylist()
    gathered.row_array[:] = 1  # its own, made for this call
    assert gathered.row_array.tolist() == [0, 2]
    assert gathered.names.to_pylist() == shown
    with pytest.raises(TypeError):
        listing.all().body()[0] = 0
    assert listing.names.to_pylist() == names
    return selection


def of_memory_that_changes(request: ListingRequest) -> Listing:
    """An encoded listing of memory that is written after it was handed over."""
    fields = EncodedNames.of(request.namespace, "persistent", ["a", "b", "c"]).fields
    data = bytearray(b"".join(fields.to_pylist()))
    offsets = np.arange(0, len(data) + 1, len(data) // 3)
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    listing = Listing.from_encoded(request.namespace, request.mode, column)
    data[:] = bytes(len(data))
    offsets[:] = -1
    return listing


def mapped(request: ListingRequest) -> Listing:
    fields = EncodedNames.of(request.namespace, "persistent", ["a", "b", "c"]).fields
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fields")
        path.write_bytes(b"".join(fields.to_pylist()))
        with pa.memory_map(str(path)) as file:
            data = file.read_buffer()
    offsets = np.concatenate(([0], np.cumsum([len(field) for field in fields.to_pylist()])))
    column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 3, [None, pa.py_buffer(offsets), data])
    return Listing.from_encoded(request.namespace, request.mode, column, mapped=True)


def matched_before(request: ListingRequest) -> Selection:
    """A selection that the core matched with another pattern."""
    listing = whole(request)
    return listing.all().matching(compile_pattern("t/n/[a-z]"))


FILTERED: dict[str, Lie] = {
    "a list": lambda _: ALL,
    "a tuple": lambda _: tuple(ALL),
    "an Arrow column": lambda _: pa.array(ALL),
    "a chunked column": lambda _: pa.chunked_array([ALL[:1], ALL[1:]]),
    "a listing": whole,
    "a selection": lambda request: whole(request).all(),
    "rows": lambda request: whole(request).rows([0, 1, 2]),
    "a range": lambda request: whole(request).range(0, 3),
    "a mask": lambda request: whole(request).all().mask(np.ones(3, bool)),
    "rows that are changed": given_rows_and_changed,
    "memory that is written": memory_written,
    "a selection that matched something else": matched_before,
    "a listing written over": lambda request: written_over(whole(request)),
    "a selection written over": lambda request: written_over(whole(request).all()),
    "a builder of another question": built_for_another,
    "a builder written over": built_and_written_over,
    "encoded names": encoded,
    "a range of encoded names": lambda request: encoded(request).range(0, 3),
    "rows of encoded names": lambda request: encoded(request).rows([0, 1, 2]),
    "encoded names in memory that changes": of_memory_that_changes,
    "encoded names of a mapped file": mapped,
    "spliced topics": lambda request: (
        Listing.from_names(request.namespace, request.mode, [A, B])
        .all()
        .spliced([], [2], Listing.from_names(request.namespace, request.mode, [C]).all())
    ),
    "a copy": lambda request: copy.deepcopy(copy.copy(whole(request).all())),
}


@pytest.mark.parametrize("kept", [False, True], ids=["made anew", "kept"])
@pytest.mark.parametrize("road", FILTERED)
async def test_topics_that_do_not_match(road: str, *, kept: bool) -> None:
    """Topics said to be filtered, with a made-up hash as well."""
    made: list[Any] = []

    def answer(request: ListingRequest) -> TopicListingResult:
        if not made or not kept:
            made.append(FILTERED[road](request))
        return TopicListingResult.success(made[-1], True, topics_hash=MADE_UP, version="1" if kept else None)

    await served(answer, [A, B], filtered=True)


@pytest.mark.parametrize("road", FILTERED)
async def test_a_made_up_hash(road: str) -> None:
    def answer(request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(FILTERED[road](request), topics_hash=MADE_UP)

    await served(answer, ALL, pattern=None)


async def test_a_made_up_hash_of_encoded_names() -> None:
    await served(
        lambda request: TopicListingResult.success(encoded(request, topics_hash=MADE_UP)), ALL, pattern=None
    )

    def counted(s: Serving) -> None:
        assert not s.dispatcher.claim_mismatches()

    right = topics_hash(ALL)
    answer = answering(lambda request: TopicListingResult.success(encoded(request, topics_hash=right)))
    async with serving(MemoryLister(STORED), {"liar": answer}) as s, await s.client() as client:
        assert (await client.ask(NAMESPACE)).topics_hash == right
        counted(s)


async def test_a_result_that_is_written_over() -> None:
    def answer(request: ListingRequest) -> TopicListingResult:
        result = TopicListingResult.success(whole(request))
        object.__setattr__(result, "filtered", True)
        object.__setattr__(result, "topics_hash", MADE_UP)
        return result

    await served(answer, [A, B], filtered=True)


async def test_passing_through_written_over_is_nobody_elses() -> None:
    forged = TopicListingResult.pass_through()
    object.__setattr__(forged, "kind", TopicListingResult.success([]).kind)
    plugins = {"other": answering(lambda _: TopicListingResult.pass_through())}
    async with serving(MemoryLister(STORED), plugins) as s, await s.client() as client:
        assert topics(await client.ask(NAMESPACE)) == STORED


async def served(
    answer: Callable[[ListingRequest], TopicListingResult],
    wanted: list[str],
    *,
    pattern: str | None = PATTERN,
    filtered: bool = False,
) -> None:
    """Ask three times, each of which is the truth and counted."""
    async with serving(MemoryLister(STORED), {"liar": answering(answer)}) as s, await s.client() as client:
        for asked in range(1, 4):
            said = await client.ask(NAMESPACE, pattern=pattern)
            assert (topics(said), said.filtered, said.topics_hash) == (wanted, filtered, topics_hash(wanted))
            assert s.dispatcher.claim_mismatches()["liar"] >= asked


def fields(*each: bytes | None) -> pa.LargeBinaryArray:
    return pa.array(each, pa.large_binary())


GOOD = EncodedNames.of("t/n", "persistent", ["a", "b", "c"]).fields.to_pylist()
WRONG: dict[str, pa.LargeBinaryArray] = {
    "another namespace": fields(*EncodedNames.of("t/other", "persistent", ["a", "b"]).fields.to_pylist()),
    "another domain": fields(*EncodedNames.of("t/n", "non-persistent", ["a"]).fields.to_pylist()),
    "not in order": fields(GOOD[1], GOOD[0]),
    "twice": fields(GOOD[0], GOOD[0]),
    "a system topic": fields(b"\x12\x20persistent://t/n/__change_events"),
    "no name": fields(b"\x12\x11persistent://t/n/"),
    "a slash": fields(b"\x12\x14persistent://t/n/a/b"),
    "another length": fields(b"\x12\x7f" + GOOD[0][2:]),
    "another tag": fields(b"\x0a" + GOOD[0][1:]),
    "a field of the answer": fields(GOOD[0] + b"\x18\x01"),
    "no UTF-8": fields(b"\x12\x12persistent://t/n/\xff"),
    "nothing": fields(b""),
    "offsets beyond the memory": pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2, [None, pa.py_buffer(np.array([0, 10**9, 40])), pa.py_buffer(b"x" * 40)]
    ),
    "offsets that go back": pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2, [None, pa.py_buffer(np.array([20, 0, 40])), pa.py_buffer(b"x" * 40)]
    ),
}


@pytest.mark.parametrize("part", ["whole", "range", "rows"])
@pytest.mark.parametrize("wrong", WRONG)
async def test_encoded_names_that_are_none(wrong: str, part: str) -> None:
    def answer(request: ListingRequest) -> TopicListingResult:
        listing = Listing.from_encoded(request.namespace, request.mode, WRONG[wrong])
        some = {
            "whole": listing,
            "range": listing.range(0, len(listing)),
            "rows": listing.rows(np.arange(len(listing))),
        }[part]
        return TopicListingResult.success(some, True, topics_hash=topics_hash([A, B]))

    async with serving(MemoryLister(STORED), {"liar": answering(answer)}) as s, await s.client() as client:
        for pattern in (PATTERN, None):
            with pytest.raises(Refused, match="plugin 'liar' returned a bad topic"):
                await client.ask(NAMESPACE, pattern=pattern)


OTHERS = ["persistent://t/other/a", "persistent://t/other/b"]


class Alike(NamespaceName):
    """Says that it is any namespace."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(NamespaceName("t", "n"))


class Changing(str):
    """Has the characters of one text, and is written as another."""

    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        return "other"


def renamed(request: ListingRequest) -> Listing:
    namespace = NamespaceName("t", "other")
    listing = Listing.from_names(namespace, request.mode, OTHERS)
    for value in (namespace, listing.namespace):
        for name, part in (("tenant", "t"), ("namespace", "n")):
            with pytest.raises(AttributeError):
                object.__setattr__(value, name, part)
    return listing


@pytest.mark.parametrize(
    "made",
    [
        renamed,
        lambda request: Listing.from_names(Alike("t", "other"), request.mode, OTHERS),
        lambda request: Listing.from_names(NamespaceName("t", Changing("n")), request.mode, OTHERS),
        lambda _: Listing.from_names("t/other", Mode.ALL, OTHERS),
        lambda _: OTHERS,
    ],
    ids=["renamed", "alike", "changing", "another", "a list"],
)
async def test_topics_of_another_namespace(made: Lie) -> None:
    plugin = answering(lambda request: TopicListingResult.success(made(request)))
    async with serving(MemoryLister(STORED), {"liar": plugin}) as s, await s.client() as client:
        for _ in range(2):
            with pytest.raises(Refused, match="liar"):
                await client.ask(NAMESPACE)
        assert NamespaceName.parse("t/other").namespace == "other"


class Formatted(str):
    """Is written as another pattern than its characters are."""

    __slots__ = ()

    def __format__(self, _spec: str) -> str:
        return ".*"


async def test_a_pattern_that_is_compiled_as_another() -> None:
    """Compiled patterns are remembered by the broker, for all questions with this text."""
    text = "t/n/[ab]+"

    def answer(request: ListingRequest) -> TopicListingResult:
        forged = compile_pattern(Formatted(text))
        return TopicListingResult.success(whole(request).matching(forged), True)

    assert compile_pattern(Formatted("t/n/[a-b]{1}")).anchored == compile_pattern("t/n/[a-b]{1}").anchored
    async with serving(MemoryLister(STORED), {"liar": answering(answer)}) as s, await s.client() as client:
        for _ in range(2):
            said = await client.ask(NAMESPACE, pattern=text)
            assert (topics(said), said.filtered, said.topics_hash) == ([A, B], True, topics_hash([A, B]))


@pytest.mark.parametrize("mode", [0, 2])
async def test_a_question_that_is_written_over(mode: int) -> None:
    """A plugin that changes the question that it was given answers the one that was asked."""

    def answer(request: ListingRequest) -> TopicListingResult:
        changes = {
            "pattern": compile_pattern("t/n/.*"),
            "namespace": NamespaceName("t", "other"),
            "mode": Mode.NON_PERSISTENT,
            "topics_hash": MADE_UP,
            "properties": {},
        }
        topics = whole(request)
        for name, value in changes.items():
            object.__setattr__(request, name, value)
        return TopicListingResult.success(topics, True, topics_hash=MADE_UP)

    async with serving(MemoryLister(STORED), {"liar": answering(answer)}) as s, await s.client() as client:
        said = await client.ask(NAMESPACE, mode, pattern=PATTERN)
        assert (topics(said), said.filtered, said.topics_hash) == ([A, B], True, topics_hash([A, B]))

    def unchanged(request: ListingRequest) -> TopicListingResult:
        object.__setattr__(request, "topics_hash", MADE_UP)
        return TopicListingResult.unchanged(MADE_UP)

    async with serving(MemoryLister(STORED), {"liar": answering(unchanged)}) as s, await s.client() as client:
        with pytest.raises(Refused, match="unchanged"):
            await client.ask(NAMESPACE, mode, topics_hash="01234567")


def test_nothing_of_the_interface_can_be_made_up() -> None:
    listing = Listing.from_names("t/n", Mode.PERSISTENT, ALL)
    for kind in (Listing, Selection, TopicsPattern):
        with pytest.raises(TypeError):
            kind(listing)
        with pytest.raises(TypeError, match="is final"):
            type("Evil", (kind,), {})
    for made in (listing, listing.all(), compile_pattern(PATTERN)):
        written_over(made)
        with pytest.raises(TypeError, match="stays in its process"):
            pickle.dumps(made)
    with pytest.raises(TypeError):
        ListingBuilder(
            type("Fake", (), {"namespace": NamespaceName.parse("t/n"), "mode": Mode.ALL, "pattern": None})()
        )


@pytest.mark.parametrize("rows", [[3], [-1], [1, 0], [0, 0], [[0]], [0.5], [2**40], [True]], ids=str)
def test_rows_that_are_none_are_refused(rows: Any) -> None:
    with pytest.raises((IndexError, ValueError)):
        Listing.from_names("t/n", Mode.PERSISTENT, ALL).rows(np.array(rows))
