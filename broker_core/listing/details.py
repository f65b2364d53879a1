"""Details of topics besides their names, as Arrow columns: one row a topic, keyed by its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.immutable import seal_value
from broker_core.names import MAX_PARTITIONS

__all__ = ["DETAIL_TYPES", "TOPIC", "WANTS", "Details", "check_values", "checked_wants"]


#: The column that rows are keyed by.
TOPIC: Final = "topic"
_TEXT_MAP: Final = pa.map_(pa.string(), pa.string())
#: The other columns, and the type of each.
DETAIL_TYPES: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "partitions": pa.int32(),
        "topic_id": pa.binary(16),
        "properties": _TEXT_MAP,
        "configs": _TEXT_MAP,
        "created": pa.timestamp("ms"),
    }
)
#: The details that can be requested (``request.wants``).
WANTS: Final = frozenset(DETAIL_TYPES)

_SHOWN: Final = {**DETAIL_TYPES, "topic_id": "pyarrow.binary(16)", TOPIC: "string"}
#: Characters of a name in an error.
_NAMED: Final = 200


def checked_wants(wants: object) -> frozenset[str]:
    """The words as a set. Raises :exc:`TypeError`, or a :exc:`ValueError` that lists the valid words."""
    if isinstance(wants, str) or not isinstance(wants, Collection):
        raise TypeError(f"wants must be a set of words, not {type(wants).__name__}")
    unknown = [word for word in wants if word not in WANTS]
    if unknown:
        known = ", ".join(map(repr, DETAIL_TYPES))
        raise ValueError(f"wants has {unknown[0]!r:.100}, and there are {known}")
    return frozenset(wants)


class Details:
    """Details of some topics: a record batch with a column ``topic`` and some of the others.

    ``topic`` is the full name without partition suffix (``persistent://tenant/namespace/topic``), each once, in any
    order. The others are ``partitions`` (int32: the number that clients get, 0 for a topic without partitions),
    ``topic_id`` (fixed-size binary of 16 bytes; KIP-516), ``properties`` and ``configs`` (map of string to string) and
    ``created`` (timestamp in ms, in UTC). A null is "not known"; names and numbers of partitions must not be null.

    Raises :exc:`TypeError` for a column of another name or type. The receiver checks the values.
    """

    __slots__ = ("batch",)

    batch: pa.RecordBatch

    def __new__(cls, batch: pa.RecordBatch) -> Self:
        details = object.__new__(cls)
        _put_batch(details, _typed(batch))
        return details

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Details cannot be changed")

    @classmethod
    def of(
        cls,
        topics: Sequence[str] | pa.Array[Any],
        *,
        partitions: Iterable[int] | pa.Array[Any] | None = None,
        topic_id: Iterable[bytes | None] | pa.Array[Any] | None = None,
        properties: Iterable[Mapping[str, str] | None] | pa.Array[Any] | None = None,
        configs: Iterable[Mapping[str, str] | None] | pa.Array[Any] | None = None,
        created: Iterable[Any] | pa.Array[Any] | None = None,
    ) -> Details:
        """Details from Python values, one for each topic; ``created`` are ``datetime`` or milliseconds."""
        given: dict[str, Any] = {
            "partitions": partitions,
            "topic_id": topic_id,
            "properties": properties,
            "configs": configs,
            "created": created,
        }
        columns: dict[str, Any] = {TOPIC: _column(topics, pa.large_string())}
        for name, values in given.items():
            if values is not None:
                columns[name] = _column(values, DETAIL_TYPES[name])
        return cls(pa.RecordBatch.from_pydict(columns))

    @property
    def topics(self) -> pa.LargeStringArray:
        """The full names without partition suffix."""
        return self.batch.column(TOPIC)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns besides ``topic``."""
        return tuple(name for name in self.batch.schema.names if name != TOPIC)

    def column(self, name: str) -> Any:
        """The values of one column, in the order of :attr:`topics`; :exc:`KeyError` for one that is not there."""
        return self.batch.column(name)

    def to_pylist(self) -> list[dict[str, Any]]:
        """A dictionary for each topic; maps are dictionaries too. For tests and small answers."""
        rows: list[dict[str, Any]] = self.batch.to_pylist(maps_as_pydicts="strict")
        return rows

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def __repr__(self) -> str:
        return f"<Details of {counted(len(self), 'topic')}: {', '.join(self.columns) or 'nothing'}>"


(_put_batch,) = seal_value(Details)


def check_values(details: Details, wants: Collection[str]) -> None:
    """Raise a :exc:`ValueError` that names the first invalid topic, or the column.

    All is done on columns. The caller checks that the topics are the listed ones.
    """
    for name in details.columns:
        if name not in wants:
            raise ValueError(f"a column {name!r} was not asked for (request.wants)")
    # A column may hold bytes that are invalid for its type.
    details.batch.validate(full=True)
    topics = details.topics
    if topics.null_count:
        raise ValueError("a topic is null")
    distinct = topics.unique()
    if len(distinct) != len(topics):
        counts = pc.value_counts(topics)
        twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        raise ValueError(f"{_named(twice[0])} is there more than once")
    for name in details.columns:
        values = details.column(name)
        if name == "partitions":
            _check_partitions(topics, values)
        elif name == "topic_id":
            _check_ids(topics, values)
        elif pa.types.is_map(values.type):
            _check_map(topics, name, values)


def _typed(batch: object) -> pa.RecordBatch:
    """The batch with exactly the types of the contract; equivalent types are cast."""
    if not isinstance(batch, pa.RecordBatch):
        instead = ": write table.combine_chunks().to_batches()[0]" if isinstance(batch, pa.Table) else ""
        raise TypeError(f"details must be a pyarrow.RecordBatch, not {type(batch).__name__}{instead}")
    names = batch.schema.names
    if TOPIC not in names:
        raise TypeError(f"details must have a column {TOPIC!r}, the full name without partition suffix")
    if len(set(names)) != len(names):
        raise TypeError("details have two columns of one name")
    columns = {}
    for name, column in zip(names, batch.columns, strict=True):
        if name == TOPIC:
            fits = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            target: pa.DataType = pa.large_string()
        elif name in DETAIL_TYPES:
            target = DETAIL_TYPES[name]
            fits = _is(column.type, target)
        else:
            known = ", ".join(map(repr, DETAIL_TYPES))
            raise TypeError(f"details have a column {name!r:.100}, and there are {known}")
        if not fits:
            raise TypeError(f"the column {name!r} of details must be {_SHOWN[name]}, not {column.type}")
        column.validate(full=True)  # before anything follows its offsets
        columns[name] = column if column.type == target else column.cast(target)
    return pa.RecordBatch.from_pydict(columns)


def _is(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_map(wanted):
        fits = (
            pa.types.is_map(given)
            and pa.types.is_string(given.key_type)
            and pa.types.is_string(given.item_type)
        )
    elif pa.types.is_timestamp(wanted):
        fits = pa.types.is_timestamp(given) and given.unit == "ms" and given.tz in {None, "UTC"}
    else:
        fits = given == wanted
    return bool(fits)


def _column(values: Any, type_: pa.DataType) -> Any:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_map(type_):
        values = [None if value is None else list(value.items()) for value in values]
    return pa.array(values, type_)


def _check_partitions(topics: Any, values: Any) -> None:
    if values.null_count:
        raise ValueError(f"no number of partitions for {_first(topics, pc.is_null(values))}")
    for bad, what in (
        (pc.less(values, 0), "a negative number of partitions"),
        (pc.greater(values, MAX_PARTITIONS), f"more than {MAX_PARTITIONS} partitions"),
    ):
        if bad.true_count:
            raise ValueError(f"{what} for {_first(topics, bad)}")


def _check_ids(topics: Any, values: Any) -> None:
    known = values.drop_null()
    if len(known.unique()) == len(known):
        return
    counts = pc.value_counts(known)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0]
    both = topics.filter(pc.equal(values, twice))
    raise ValueError(f"one topic_id for {_named(both[0])} and for {_named(both[1])}")


def _check_map(topics: Any, column: str, values: Any) -> None:
    """Raise a :exc:`ValueError` if a value is null or a key is there twice."""
    offsets = values.offsets.to_numpy()
    first, pairs_of = int(offsets[0]), np.diff(offsets)
    rows = pa.array(np.repeat(np.arange(len(values)), pairs_of))
    keys, items = (each.slice(first, len(rows)) for each in (values.keys, values.items))
    if items.null_count:
        row = rows.filter(pc.is_null(items))[0].as_py()
        raise ValueError(f"a null value in the column {column!r} for {_named(topics[row])}")
    pairs = pa.table({"row": rows, "key": keys}).group_by(["row", "key"]).aggregate([([], "count_all")])
    if len(pairs) != len(keys):
        twice = pairs.filter(pc.greater(pairs["count_all"], 1))
        row, key = twice["row"][0].as_py(), twice["key"][0].as_py()
        raise ValueError(f"the key {key!r:.100} twice in the column {column!r} for {_named(topics[row])}")


def _first(topics: Any, bad: Any) -> str:
    return _named(topics.filter(bad)[0])


def _named(topic: Any) -> str:
    return repr(topic.as_py()[:_NAMED])
