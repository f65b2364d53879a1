"""Valid and invalid answers of a lister."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.details import Details
from broker_core.listing.listing import Listing
from broker_core.listing.pages.page import Position
from broker_core.names import Mode
from broker_core.plugin_api.listing_result import AnswerKind, TopicListingResult

NAMES = ["persistent://t/n/a", "persistent://t/n/b"]
LISTING = Listing.from_names("t/n", Mode.PERSISTENT, NAMES)


class _Lazy(Sequence[str]):
    """A sequence of a plugin's own making."""

    def __init__(self) -> None:
        self.reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return NAMES[index]

    def __len__(self) -> int:
        return len(NAMES)


@pytest.mark.parametrize(
    "topics",
    [NAMES, tuple(NAMES), [], pa.array(NAMES), pa.chunked_array([NAMES]), LISTING, LISTING.all()],
    ids=lambda topics: type(topics).__name__,
)
def test_topics_are_handed_over_as_they_are(topics: Any) -> None:
    result = TopicListingResult.success(topics)
    assert result.topics is topics
    assert (result.kind, result.filtered, result.topics_hash, result.version) == (
        AnswerKind.SUCCESS,
        False,
        None,
        None,
    )
    assert not result.is_pass_through
    assert f"<{len(topics)} topics>" in repr(result)


def test_a_sequence_of_another_making_is_read_once_and_now() -> None:
    lazy = _Lazy()
    result = TopicListingResult.success(lazy)
    assert result.topics == tuple(NAMES)
    reads = lazy.reads
    assert list(result.topics) == NAMES
    assert lazy.reads == reads


def test_everything_that_a_success_may_say() -> None:
    result = TopicListingResult.success(NAMES, True, topics_hash="0a1b2c3d", version=7)
    assert (result.filtered, result.topics_hash, result.version) == (True, "0a1b2c3d", 7)
    assert TopicListingResult.success(NAMES, version="v1").version == "v1"
    assert repr(result) == "TopicListingResult.success(<2 topics>, filtered=True)"


async def _later() -> AsyncIterator[str]:
    yield NAMES[0]


@pytest.mark.parametrize(
    ("topics", "options", "error", "says"),
    [
        (None, {}, ValueError, "Topics list cannot be null"),
        (
            "persistent://t/n/a",
            {},
            TypeError,
            r"not str: write \[topic\] for one topic, or topics.splitlines",
        ),
        (b"persistent://t/n/a", {}, TypeError, r"not bytes: write \[bytes\(topic\).decode\(\)\]"),
        (bytearray(b"a"), {}, TypeError, "not bytearray: write"),
        (memoryview(b"a"), {}, TypeError, "not memoryview: write"),
        ({"a"}, {}, TypeError, r"not set: write list\(topics\)"),
        ({"a": 1}, {}, TypeError, r"not dict: write list\(topics\)"),
        ({"a": 1}.keys(), {}, TypeError, r"not dict_keys: write list\(topics\)"),
        (iter(NAMES), {}, TypeError, r"not list_iterator: write list\(topics\)"),
        ((name for name in NAMES), {}, TypeError, r"not generator: write list\(topics\)"),
        (_later(), {}, TypeError, r"not async_generator: write \[topic async for topic in topics\]"),
        (np.array(NAMES), {}, TypeError, r"not ndarray: write topics.tolist\(\)"),
        (pa.scalar("a"), {}, TypeError, r"not StringScalar: write \[topic.as_py\(\)\]"),
        (pa.table({"name": NAMES}), {}, TypeError, r"not Table: write .*topics.column\(0\)"),
        (range(3), {}, TypeError, "not range: write"),
        (7, {}, TypeError, r"not int: write \[\] if there are none, or pass_through"),
        (NAMES, {"version": True}, TypeError, "version must be a string or an integer, not bool"),
        (NAMES, {"owned": "yes"}, TypeError, "owned must be a bool, not str"),
        (NAMES, {"filtered": 1}, TypeError, "filtered must be a bool, not int"),
        (NAMES, {"filtered": None}, TypeError, "filtered must be a bool"),
        (NAMES, {"topics_hash": 7}, TypeError, "topics_hash must be a string"),
        (NAMES, {"version": 1.5}, TypeError, "version must be a string or an integer"),
    ],
)
def test_what_is_no_success(topics: Any, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        TopicListingResult.success(topics, **options)


def test_passing_through_is_nobody_elses() -> None:
    result = TopicListingResult.pass_through()
    assert result is not TopicListingResult.pass_through()
    assert result.is_pass_through
    assert result.kind is AnswerKind.PASS_THROUGH
    assert repr(result) == "TopicListingResult.pass_through()"
    assert (result.why, TopicListingResult.pass_through("not mine").why) == (None, "not mine")
    with pytest.raises(TypeError, match="why must be a string, not int"):
        TopicListingResult.pass_through(7)  # type: ignore[arg-type]


def test_unchanged_names_the_hash() -> None:
    result = TopicListingResult.unchanged("0a1b2c3d")
    assert (result.kind, result.topics_hash, result.is_pass_through) == (
        AnswerKind.UNCHANGED,
        "0a1b2c3d",
        False,
    )
    assert repr(result) == "TopicListingResult.unchanged('0a1b2c3d')"
    for nothing in ("", None, 7):
        with pytest.raises(ValueError, match="needs the topics hash"):
            TopicListingResult.unchanged(nothing)  # type: ignore[arg-type]


def test_a_result_is_made_by_its_methods_only() -> None:
    with pytest.raises(TypeError, match="use TopicListingResult"):
        TopicListingResult()


@pytest.mark.parametrize("field", TopicListingResult.__slots__)
def test_an_answer_stays_as_it_was_checked(field: str) -> None:
    result = TopicListingResult.success(NAMES)
    with pytest.raises(
        AttributeError, match=f"cannot be changed: give {field} to TopicListingResult.success"
    ):
        setattr(result, field, None)
    with pytest.raises(AttributeError, match="cannot be changed"):
        delattr(result, field)
    assert result.topics is NAMES


def test_details_and_where_the_next_page_begins() -> None:
    plain = TopicListingResult.success(NAMES)
    assert (plain.details, plain.next) == (None, None)
    details = Details.of(NAMES, partitions=[0, 0])
    start = Position("persistent://t/n/c")
    full = TopicListingResult.success(NAMES, details=details.batch, next=start)
    assert full.details is not None
    assert (full.details.batch, full.next) == (details.batch, start)
    assert TopicListingResult.success(NAMES, details=details).details is details
    with pytest.raises(TypeError, match=r"next must be a broker_core.Position or None, not str"):
        TopicListingResult.success(NAMES, next="persistent://t/n/c")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"details must be a pyarrow.RecordBatch, not list"):
        TopicListingResult.success(NAMES, details=[])
