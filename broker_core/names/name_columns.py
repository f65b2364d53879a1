"""Columns of topic names: checking, splitting and ordering millions of names without a Python object for each.

All columns are Arrow ``large_string`` arrays without nulls. Rules are those of :mod:`broker_core.names`; if a column
breaks one, the first offending name is parsed alone, so that the message is the strict parser's.

Partition suffixes of a column are found for all names at once, by the rule of
:func:`broker_core.names.partition_index`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.concurrency import pass_lock_on
from broker_core.errors import InvalidListing, InvalidName
from broker_core.names.namespace_name import NamespaceName
from broker_core.names.partitions import MAX_PARTITION_INDEX, PARTITION_SUFFIX
from broker_core.names.system_topics import system_topics_rule
from broker_core.names.topic_name import (
    MAX_NAME_BYTES,
    NON_PERSISTENT,
    PERSISTENT,
    Mode,
    TopicName,
    check_local_name,
)
from broker_core.redaction import quoted

__all__ = [
    "Array",
    "as_column",
    "check_local_names",
    "column_data",
    "contains",
    "listed_topic",
    "matched_forms",
    "partitioned_local_names",
    "split_full_names",
    "split_partitions",
    "system_topic_mask",
    "with_ends",
    "without_ends",
]


#: An array of numbers of any kind and shape.
Array: TypeAlias = np.ndarray[Any, Any]
_TEXT: Final = pa.large_string()
#: Python strings that are converted to a column, or freed, at once: about a millisecond.
_OBJECTS: Final = 5000

_END: Final = 2**31 - 1  # after the end of any name; Arrow's own default overflows its sizes


def as_column(names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.LargeStringArray:
    """Any sequence of strings, or Arrow string column, as one contiguous ``large_string`` array.

    Raises :exc:`InvalidListing` for nulls, for anything but strings and for invalid UTF-8.
    """
    try:
        if isinstance(names, pa.Array | pa.ChunkedArray):
            # Before anything follows its offsets.
            names.validate(full=True)
        if isinstance(names, pa.ChunkedArray):
            names = names.combine_chunks()
        if isinstance(names, pa.ChunkedArray):  # of several chunks still, or of none
            names = pa.concat_arrays(names.chunks) if names.num_chunks else pa.array([], names.type)
        if isinstance(names, pa.Array):
            if not _is_text(names.type):
                raise InvalidListing(f"topics must be strings, not a column of {names.type}")
            column = names.cast(pa.large_string())
        else:
            column = _of_objects(names)
    except UnicodeEncodeError:
        raise InvalidListing("a topic name is not valid Unicode (a lone surrogate)") from None
    except pa.ArrowException as error:
        if not isinstance(names, pa.Array | pa.ChunkedArray):
            raise InvalidListing(_no_string(names)) from None
        raise InvalidListing(f"topics must be strings of valid UTF-8: {error}") from None
    if column.null_count:
        raise InvalidListing(
            f"topics must not be null, but the name at position {_first(column.is_null())} is: leave it out"
        )
    return column


def _no_string(names: Sequence[object]) -> str:
    """The error for the first of ``names`` that is not a string, with advice."""
    for position, name in enumerate(names):
        if name is not None and not isinstance(name, str):
            instead = ": write name.decode()" if isinstance(name, bytes | bytearray) else ""
            if hasattr(name, "as_py"):
                instead = ": write name.as_py()"
            return f"topics must be strings, but that at position {position} is of type {type(name).__name__}{instead}"
    return "topics must be strings of valid UTF-8"


def _of_objects(names: Sequence[str]) -> pa.LargeStringArray:
    """The column of Python strings, made in slices: making one holds the interpreter's lock."""
    slices: list[pa.LargeStringArray] = []
    for start in range(0, len(names), _OBJECTS):
        part = names[start : start + _OBJECTS] if len(names) > _OBJECTS else names
        slices.append(pa.array(part, pa.large_string()))
        # Arrow takes a string for its characters, and bytes for UTF-8.
        if isinstance(names, str):
            raise InvalidListing("topics must be a sequence of strings, not a string: write [topic]")
        if bytes in set(map(type, part)):
            raise InvalidListing(_no_string(names))
        if part is not names:
            del part
            pass_lock_on()
    return slices[0] if len(slices) == 1 else pa.concat_arrays(slices) if slices else pa.array([], _TEXT)


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _is_text(type_.value_type)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(kind(type_) for kind in kinds)


def _first(mask: pa.BooleanArray) -> int:
    return int(pc.index(mask, pa.scalar(True)).as_py())


def column_data(column: pa.LargeStringArray | pa.LargeBinaryArray) -> tuple[pa.Buffer, Array]:
    """The buffer that holds the column's bytes, and ``len + 1`` offsets into it (int64; for a slice, its own part)."""
    _, offsets, data = column.buffers()
    every = (
        np.frombuffer(offsets, np.int64) if offsets is not None and offsets.size else np.zeros(1, np.int64)
    )
    return data if data is not None else pa.py_buffer(b""), every[
        column.offset : column.offset + len(column) + 1
    ]


def contains(column: pa.LargeStringArray, literal: str) -> bool:
    """Whether the bytes of ``literal`` are anywhere in the column (also across two names): one pass over memory."""
    data, offsets = column_data(column)
    if not len(column):
        return False
    # As one string: RE2 finds a literal at memory speed, Arrow's own substring kernel is ten times slower.
    whole = pa.LargeStringArray.from_buffers(1, pa.py_buffer(offsets[[0, -1]].copy()), data)
    return bool(pc.match_substring_regex(whole, re2.escape(literal))[0].as_py())


def check_local_names(column: pa.LargeStringArray) -> None:
    """Raise the :exc:`InvalidName` of the first invalid local name."""
    if not len(column):
        return
    _, offsets = column_data(column)
    sizes = np.diff(offsets)
    bad = (sizes == 0) | (sizes > MAX_NAME_BYTES)
    if contains(column, "/") or contains(column, "\0"):
        bad |= pc.match_substring_regex(column, r"[/\x00]").to_numpy(zero_copy_only=False)
    if bad.any():
        check_local_name(column[int(bad.argmax())].as_py())


def split_full_names(
    column: pa.LargeStringArray, namespace: NamespaceName, mode: Mode
) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """The local names of full names: (persistent, non-persistent), each in the order of the column.

    Raises :exc:`InvalidListing` for the first name that does not parse or is of another namespace or mode.
    """
    empty = pa.array([], pa.large_string())
    persistent_prefix, other_prefix = f"{PERSISTENT}://{namespace}/", f"{NON_PERSISTENT}://{namespace}/"
    is_persistent = pc.starts_with(column, persistent_prefix)
    all_persistent = bool(pc.all(is_persistent, min_count=0).as_py())
    if all_persistent:
        persistent, other = column, empty
    else:
        is_other = pc.starts_with(column, other_prefix)
        known = pc.or_(is_persistent, is_other)
        if not pc.all(known).as_py():
            listed_topic(column[_first(pc.invert(known))].as_py(), namespace, mode)
        persistent, other = column.filter(is_persistent), column.filter(is_other)
    if len(persistent) and not mode.lists(PERSISTENT):
        listed_topic(persistent[0].as_py(), namespace, mode)
    if len(other) and not mode.lists(NON_PERSISTENT):
        listed_topic(other[0].as_py(), namespace, mode)
    locals_ = tuple(
        without_ends(part, len(prefix), 0)
        for part, prefix in ((persistent, persistent_prefix), (other, other_prefix))
    )
    for part in locals_:
        try:
            check_local_names(part)
        except InvalidName as error:
            raise InvalidListing(str(error)) from None
    return locals_[0], locals_[1]


def listed_topic(name: str, namespace: NamespaceName, mode: Mode) -> TopicName:
    """The topic of a full name in a listing. Raises :exc:`InvalidListing` if it is invalid, or belongs elsewhere."""
    try:
        topic = TopicName.parse(name)
    except InvalidName as error:
        raise InvalidListing(str(error)) from None
    if topic.namespace != namespace:
        raise InvalidListing(f"Topic {quoted(name)} is not in namespace {namespace}")
    if not mode.lists(topic.domain):
        raise InvalidListing(f"Topic {quoted(name)} does not belong into a listing of mode {mode.name}")
    return topic


def system_topic_mask(
    bases: pa.LargeStringArray, namespace: NamespaceName, domain: str
) -> pa.BooleanArray | None:
    """A mask of the system topics among local names without partition suffix; ``None`` if there is none."""
    rule = system_topics_rule()
    marks: list[pa.BooleanArray] = []
    if not rule.mark or contains(bases, rule.mark):
        names = pa.array(sorted(rule.local_names), pa.large_string())
        marks += [pc.is_in(bases, names), pc.ends_with(bases, rule.local_suffix)]
    marks += [pc.starts_with(bases, prefix) for prefix in rule.local_prefixes(namespace, domain)]
    mask: pa.BooleanArray | None = None
    for mark in marks:
        mask = mark if mask is None else pc.or_(mask, mark)
    return mask if mask is not None and mask.true_count else None


def with_ends(column: pa.LargeStringArray, prefix: str, suffix: str) -> pa.LargeStringArray:
    """Each name between ``prefix`` and ``suffix``."""
    # Replacing nothing at either end is several times faster than joining columns.
    result = column.cast(pa.large_binary())
    if prefix:
        result = pc.binary_replace_slice(result, 0, 0, prefix.encode())
    if suffix:
        result = pc.binary_replace_slice(result, _END, _END, suffix.encode())
    return result.cast(pa.large_string())


def without_ends(
    column: pa.LargeStringArray | pa.LargeBinaryArray, head: int, tail: int
) -> pa.LargeStringArray:
    """Each name without its first ``head`` and last ``tail`` bytes, which must be whole characters."""
    stop = -tail if tail else _END
    return pc.binary_slice(column.cast(pa.large_binary()), head, stop).cast(pa.large_string())


_SUFFIX: Final = np.frombuffer(PARTITION_SUFFIX.encode(), np.uint8)
_MOST_DIGITS: Final = len(str(MAX_PARTITION_INDEX))


def partitioned_local_names(column: pa.LargeStringArray) -> pa.LargeStringArray:
    """Each local name without its partition suffix, if it has one; the column itself if none has."""
    if not contains(column, PARTITION_SUFFIX):
        return column
    data, offsets = column_data(column)
    rows, sizes = _suffixes(np.frombuffer(data, np.uint8), offsets)
    return _without(column, rows, sizes)


def split_partitions(column: pa.LargeStringArray) -> tuple[pa.LargeStringArray, Array | None]:
    """Full names without their partition suffix, and the number of each partition (int32, -1 for others).

    ``None`` in place of the numbers if no name is a partition.
    """
    if not contains(column, PARTITION_SUFFIX):
        return column, None
    buffer, offsets = column_data(column)
    data = np.frombuffer(buffer, np.uint8)
    rows, sizes = _suffixes(data, offsets)
    # The whole local name is not a suffix.
    named = data[offsets[rows + 1] - sizes - 1] != ord("/")
    rows, sizes = rows[named], sizes[named]
    if not len(rows):
        return column, None
    numbers = np.full(len(column), -1, np.int32)
    numbers[rows] = _numbers(data, offsets[rows + 1], sizes - len(_SUFFIX))
    return _without(column, rows, sizes), numbers


def _without(column: pa.LargeStringArray, rows: Array, sizes: Array) -> pa.LargeStringArray:
    """The column with the ends of some rows, of the given sizes, removed."""
    if not len(rows):
        return column
    data, offsets = column_data(column)
    # Twice as many values over the same memory, names and suffixes alternating, of which the names are taken.
    edges = np.repeat(offsets, 2)[:-1]
    edges[2 * rows + 1] = offsets[rows + 1] - sizes
    untouched = np.ones(len(column), bool)
    untouched[rows] = False
    edges[1::2][untouched] = offsets[1:][untouched]
    halves = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)
    return halves.take(pa.array(np.arange(0, len(edges) - 1, 2)))


def matched_forms(names: pa.LargeStringArray, namespace: NamespaceName) -> pa.LargeStringArray:
    """The forms for patterns of a namespace's full names, in the order of the hash: non-persistent ones first."""
    forms: list[pa.LargeStringArray] = []
    others = 0
    if len(names) and names[0].as_py().startswith(NON_PERSISTENT):
        others = pc.sum(pc.starts_with(names, NON_PERSISTENT)).as_py()
    for domain, part in ((NON_PERSISTENT, names[:others]), (PERSISTENT, names[others:])):
        if len(part):
            locals_ = without_ends(part, len(f"{domain}://{namespace}/"), 0)
            forms.append(with_ends(partitioned_local_names(locals_), f"{namespace}/", ""))
    if not forms:
        return pa.array([], pa.large_string())
    return forms[0] if len(forms) == 1 else pa.concat_arrays(forms)


def _suffixes(data: Array, offsets: Array) -> tuple[Array, Array]:
    """The rows that have a partition suffix, and the bytes that it takes in each."""
    starts, ends = offsets[:-1], offsets[1:]
    digits = np.zeros(len(starts), np.int8)
    rows = np.flatnonzero(ends - starts > len(_SUFFIX) + 1)  # a name is left, and a digit
    # From the end on, one digit a round, over the names that had only digits so far.
    for place in range(1, _MOST_DIGITS + 2):
        if not len(rows):
            break
        at = ends[rows] - place
        rows = rows[_is_digit(data[at]) & (at > starts[rows] + len(_SUFFIX))]
        digits[rows] += 1
    rows = np.flatnonzero((digits > 0) & (digits <= _MOST_DIGITS))
    index_at = ends[rows] - digits[rows]
    for place in range(-1, -len(_SUFFIX) - 1, -1):
        has = data[index_at + place] == _SUFFIX[place]
        rows, index_at = rows[has], index_at[has]
    canonical = (data[index_at] != ord("0")) | (digits[rows] == 1)
    longest = digits[rows] == _MOST_DIGITS
    ends_of = index_at[longest] + _MOST_DIGITS
    canonical[longest] &= _numbers(data, ends_of, digits[rows][longest]) <= MAX_PARTITION_INDEX
    return rows[canonical], digits[rows[canonical]] + len(_SUFFIX)


def _is_digit(byte: Array) -> Array:
    result: Array = (byte >= ord("0")) & (byte <= ord("9"))
    return result


def _numbers(data: Array, ends: Array, digits: Array) -> Array:
    """The numbers that end before some places, each with so many digits."""
    value = np.zeros(len(ends), np.int64)
    for place in range(1, _MOST_DIGITS + 1):
        rows = np.flatnonzero(digits >= place)
        if not len(rows):
            break
        value[rows] += (data[ends[rows] - place] - np.int64(ord("0"))) * 10 ** (place - 1)
    return value
