"""Details of topics from plugins, checked on columns: every mistake and its message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from broker_core import Details
from broker_core.listing.details import DETAIL_TYPES, WANTS, check_values, checked_wants
from broker_core.names.partitions import MAX_PARTITIONS

A, B = "persistent://t/n/a", "persistent://t/n/b"
MAP = pa.map_(pa.string(), pa.string())


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"topic": pa.array([A, B]), **columns})


def test_details_of_python_values() -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    details = Details.of(
        [A, B],
        partitions=[3, 0],
        topic_id=[b"1" * 16, None],
        properties=[{"env": "prod"}, {}],
        configs=[None, {"retention.ms": "1"}],
        created=[when, None],
    )
    check_values(details, WANTS)
    assert {name: details.column(name).type for name in details.columns} == DETAIL_TYPES
    assert details.topics.to_pylist() == [A, B]
    assert details.to_pylist() == [
        {
            "topic": A,
            "partitions": 3,
            "topic_id": b"1" * 16,
            "properties": {"env": "prod"},
            "configs": None,
            "created": when.replace(tzinfo=None),
        },
        {
            "topic": B,
            "partitions": 0,
            "topic_id": None,
            "properties": {},
            "configs": {"retention.ms": "1"},
            "created": None,
        },
    ]
    assert len(details) == 2
    with pytest.raises(AttributeError):
        details.batch = batch()


def test_the_same_type_by_another_name_is_taken() -> None:
    details = Details(
        pa.RecordBatch.from_pydict(
            {
                "created": pa.array([5], pa.timestamp("ms", "UTC")),
                "properties": pa.array([[("k", "v")]], pa.map_(pa.string(), pa.string(), keys_sorted=True)),
                "topic": pa.array([A], pa.large_string()),
            }
        )
    )
    check_values(details, {"created", "properties"})
    assert details.column("created").type == pa.timestamp("ms")
    assert details.column("properties").type == MAP


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"partitions": pa.array([1, 2], pa.int64())}, "'partitions' of details must be int32, not int64"),
        ({"partitions": pa.array(["1", "2"])}, "must be int32, not string"),
        ({"topic_id": pa.array([b"1" * 16, None], pa.binary())}, r"pyarrow.binary\(16\), not binary"),
        ({"topic_id": pa.array([b"1" * 15, None], pa.binary(15))}, r"not fixed_size_binary\[15\]"),
        ({"properties": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64()))}, "map<string, string>"),
        ({"configs": pa.array(["{}", "{}"])}, "'configs' of details must be map<string, string>, not string"),
        ({"created": pa.array([1, 2], pa.timestamp("us"))}, r"timestamp\[ms\], not timestamp\[us\]"),
        ({"created": pa.array([1, 2], pa.timestamp("ms", "Europe/Berlin"))}, "not timestamp"),
        ({"created": pa.array([1, 2])}, "not int64"),
        ({"topic": pa.array([1, 2])}, "'topic' of details must be string, not int64"),
        ({"topic": pa.array([b"a", b"b"])}, "'topic' of details must be string, not binary"),
        ({"color": pa.array([1, 2])}, "a column 'color', and there are 'partitions', 'topic_id'"),
    ],
)
def test_a_column_of_another_name_or_type(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Details(batch(**columns))


def test_what_is_no_batch_of_details() -> None:
    with pytest.raises(TypeError, match="not dict"):
        Details({"topic": [A]})
    with pytest.raises(TypeError, match="combine_chunks"):
        Details(pa.table({"topic": [A]}))
    with pytest.raises(TypeError, match="must have a column 'topic'"):
        Details(pa.RecordBatch.from_pydict({"name": pa.array([A])}))
    twice = pa.RecordBatch.from_arrays([pa.array([A]), pa.array([B])], names=["topic", "topic"])
    with pytest.raises(TypeError, match="two columns of one name"):
        Details(twice)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"topic": pa.array([A, None])}, "a topic is null"),
        ({"topic": pa.array([A, A])}, f"'{A}' is there more than once"),
        ({"partitions": pa.array([1, None], pa.int32())}, f"no number of partitions for '{B}'"),
        ({"partitions": pa.array([-1, 1], pa.int32())}, f"a negative number of partitions for '{A}'"),
        (
            {"partitions": pa.array([MAX_PARTITIONS, MAX_PARTITIONS + 1], pa.int32())},
            f"more than 1000000 partitions for '{B}'",
        ),
        ({"topic_id": pa.array([b"1" * 16] * 2, pa.binary(16))}, f"one topic_id for '{A}' and for '{B}'"),
        (
            {"properties": pa.array([[], [("k", None)]], MAP)},
            f"null value in the column 'properties' for '{B}'",
        ),
        (
            {"configs": pa.array([[("k", "1")], [("k", "1"), ("k", "2")]], MAP)},
            f"the key 'k' twice in the column 'configs' for '{B}'",
        ),
    ],
)
def test_a_wrong_value_is_named(columns: dict[str, Any], says: str) -> None:
    details = Details(batch(**columns))
    with pytest.raises(ValueError, match=says):
        check_values(details, WANTS)


def test_a_part_of_a_larger_batch_is_checked_as_that_part() -> None:
    whole = batch(properties=pa.array([[("k", None)], [("k", "v"), ("l", "w")]], MAP))
    check_values(Details(whole.slice(1)), WANTS)
    with pytest.raises(ValueError, match=f"null value in the column 'properties' for '{A}'"):
        check_values(Details(whole.slice(0, 1)), WANTS)


def test_only_what_was_asked_for() -> None:
    details = Details.of([A], partitions=[1], created=[0])
    check_values(details, {"partitions", "created"})
    with pytest.raises(ValueError, match="a column 'created' was not asked for"):
        check_values(details, {"partitions"})


def test_bytes_that_are_not_what_their_type_says() -> None:
    """A buffer of any making must neither crash nor be read past its end."""
    offsets = pa.py_buffer(b"\x00\x00\x00\x00\xff\x00\x00\x00\x01\x00\x00\x00")
    broken = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"ab"))
    with pytest.raises(ValueError, match=r"."):
        check_values(Details(pa.RecordBatch.from_arrays([broken], names=["topic"])), WANTS)


def test_the_words_to_ask_with() -> None:
    assert checked_wants({"partitions", "configs"}) == frozenset({"partitions", "configs"})
    with pytest.raises(ValueError, match="'replicas', and there are 'partitions'"):
        checked_wants(["replicas"])
    with pytest.raises(TypeError, match="a set of words, not str"):
        checked_wants("partitions")
