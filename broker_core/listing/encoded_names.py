"""The names of one namespace and domain in a listing's encoded columns, for plugins that write or read them in bulk.

A batch that precomputes answers writes encoded names and the hashes of the names that patterns match. A reader must
check each name. This module does both with the broker's own columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.build_chunks import checked_local_names, ordered_names
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_forms import SortedForms
from broker_core.listing.fields.fields_codec import decode_fields, encode_fields, fields_fault
from broker_core.listing.listing_hash import crc_text, crcs_of_parts, extend_crc, joined_groups
from broker_core.listing.listing_part import row_range
from broker_core.listing.search.pattern_set import match_patterns, matching_rows
from broker_core.names import (
    DOMAINS,
    Array,
    NamespaceName,
    column_data,
    hash_order_key,
    is_ascending,
    names_of_key,
    partitioned_local_names,
    sorted_rows,
    system_topic_mask,
    with_ends,
    without_ends,
)
from broker_core.patterns import TopicsPattern, real_pattern

__all__ = ["EncodedNames"]

#: Rows ``[low, high)``, or ascending row numbers.
Picked: TypeAlias = "tuple[int, int] | Array"


class EncodedNames:
    """Names of one namespace and domain: in the order of the hash, each once, without system topics. Immutable.

    Made by :meth:`of` and :meth:`decode`, which check every name. Rows count from 0, in the order of the hash (UTF-16
    code units of the full name).
    """

    def __init__(
        self,
        namespace: NamespaceName,
        domain: str,
        names: pa.LargeStringArray | None,
        fields: pa.LargeBinaryArray,
    ) -> None:
        """For the constructors below: checked columns. Names that are not given are decoded if needed."""
        self.namespace = namespace
        self.domain = domain
        self._names = names
        self._fields = fields

    @property
    def names(self) -> pa.LargeStringArray:
        """Local names."""
        if self._names is None:
            self._names = self._local(self._fields)
        return self._names

    @property
    def fields(self) -> pa.LargeBinaryArray:
        """The encoded names: each the protobuf field that it is sent in."""
        return self._fields

    @classmethod
    def of(
        cls,
        namespace: NamespaceName | str,
        domain: str,
        names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
        *,
        ordered: bool = False,
    ) -> EncodedNames:
        """The visible ones of some local names, given in any order, duplicates allowed.

        With ``ordered`` they are in order already, each once and without system topics, which is checked. Raises
        :exc:`~broker_core.errors.InvalidListing` for an invalid name, and if that order is broken.
        """
        namespace = _namespace(namespace, domain)
        column = checked_local_names(names)
        rows, shown = ordered_names(column, namespace, domain)
        if ordered and rows is not None:
            if is_ascending(hash_order_key(column)):
                raise InvalidListing(f"among the {domain} names of {namespace} are system topics")
            raise InvalidListing(
                f"the {domain} names of {namespace} are not in the order of the hash, each once"
            )
        column = shown
        joined = with_ends(column, f",{domain}://{namespace}/", "")
        return cls(namespace, domain, column, encode_fields(joined))

    @classmethod
    def decode(
        cls,
        namespace: NamespaceName | str,
        domain: str,
        fields: pa.LargeBinaryArray,
        *,
        checked: bool = False,
    ) -> EncodedNames:
        """The names in encoded fields; every byte is checked, unless that was done before (``checked``).

        Raises :exc:`~broker_core.errors.InvalidListing` if they are not what :attr:`fields` of such names would be.
        """
        namespace = _namespace(namespace, domain)
        if checked:
            return cls(namespace, domain, None, fields)
        prefix = f"{domain}://{namespace}/"
        try:
            fields.validate(full=True)
            fault = f"{fields.null_count} are null" if fields.null_count else fields_fault(fields)
            if fault is not None:
                raise InvalidListing(f"the names of {namespace}: {fault}")
            full = decode_fields(fields)
        except pa.ArrowException as error:
            raise InvalidListing(f"the names of {namespace}: {error!s:.200}") from None
        if not pc.all(pc.starts_with(full, prefix), min_count=0).as_py():
            raise InvalidListing(f"the names of {namespace}: one is of another namespace or domain")
        names = cls.of(namespace, domain, without_ends(full, len(prefix), 0), ordered=True).names
        return cls(namespace, domain, names, fields)

    def _local(self, fields: pa.LargeBinaryArray) -> pa.LargeStringArray:
        """The local names in fields of this namespace and domain."""
        return decode_fields(fields, skip=len(f"{self.domain}://{self.namespace}/"))

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns in memory."""
        made = sum(
            int(self.__dict__[name].nbytes) for name in ("matched", "_joined") if name in self.__dict__
        )
        names = 0 if self._names is None else int(self._names.nbytes)
        return names + int(self.fields.nbytes) + made

    @cached_property
    def matched(self) -> pa.LargeStringArray:
        """The text of each name that patterns match: ``tenant/namespace/topic`` without partition suffix."""
        return with_ends(partitioned_local_names(self.names), f"{self.namespace}/", "")

    def matched_at(self, rows: Array) -> pa.LargeStringArray:
        """:attr:`matched` of some rows only, in any order."""
        names = self._local(self.fields.take(pa.array(rows)))
        return with_ends(partitioned_local_names(names), f"{self.namespace}/", "")

    @cached_property
    def text_offsets(self) -> Array:
        """Offsets (int64) in the hashed text at which each name begins, its comma included, and the last one ends."""
        offsets = column_data(self._joined)[1]
        counted: Array = offsets - offsets[0]
        return counted

    @cached_property
    def _joined(self) -> pa.LargeBinaryArray:
        return decode_fields(self.fields, comma=True)

    @cached_property
    def _chunk(self) -> Chunk:
        """All names as one chunk, of any size, to be searched."""
        chunk = Chunk(self.namespace, self.domain, *column_data(self.fields))
        chunk.know_forms(SortedForms.of_forms(self.matched))
        return chunk

    def slice(self, low: int, high: int) -> EncodedNames:
        """Rows ``low`` to ``high``; nothing is copied."""
        low, high = row_range(low, high, len(self))
        size = high - low
        names = None if self._names is None else self._names.slice(low, size)
        part = EncodedNames(self.namespace, self.domain, names, self.fields.slice(low, size))
        if "matched" in self.__dict__:
            part.matched = self.matched.slice(low, size)
        return part

    def with_changes(self, gone: Array, came: EncodedNames, before: Array) -> EncodedNames:
        """These names without the rows ``gone``, and with the names ``came`` before the rows ``before``.

        All are row numbers of these names, and ascend. Raises :exc:`~broker_core.errors.InvalidListing` for names of
        another namespace or domain, and if the result is not in order, each name once.
        """
        parts = [part.fields for part in self.parts_with_changes(gone, came, before)]
        return EncodedNames(self.namespace, self.domain, None, pa.concat_arrays([self.fields[:0], *parts]))

    def parts_with_changes(self, gone: Array, came: EncodedNames, before: Array) -> list[EncodedNames]:
        """The neighbouring parts that :meth:`with_changes` joins; nothing is copied."""
        if (came.namespace, came.domain) != (self.namespace, self.domain):
            raise InvalidListing(f"names of {came.namespace} among those of {self.namespace}")
        # Neighbours that stay together are one part.
        bounds = np.unique(np.concatenate((np.array([0, len(self)]), gone, gone + 1, before)))
        stays = ~np.isin(bounds[:-1], gone)
        lows, highs = bounds[:-1][stays], bounds[1:][stays]
        # Each part is in order, so only its ends are compared with what came.
        ends = np.unique(np.concatenate((lows, highs - 1)))
        near = pa.concat_arrays([came.fields, self.fields.take(pa.array(ends))])
        order = pa.array(np.argsort(np.concatenate((before, ends)), kind="stable"))
        if len(came) and not is_ascending(hash_order_key(self._local(near.take(order)))):
            raise InvalidListing(f"the changed names of {self.namespace} are not in order, each once")
        places, firsts, counts = np.unique(before, return_index=True, return_counts=True)
        own = zip(lows.tolist(), map(self.slice, lows.tolist(), highs.tolist()), strict=True)
        new = zip(places.tolist(), map(came.slice, firsts.tolist(), (firsts + counts).tolist()), strict=True)
        return [part for _, part in sorted([*new, *own], key=itemgetter(0))]

    def crc(self, picked: Picked) -> tuple[int, int]:
        """CRC32C of the full names of some rows with commas between (``topics_hash`` as a number), and their bytes."""
        if isinstance(picked, tuple):
            low, high = row_range(*picked, len(self))
            column = self._joined.slice(low, high - low)
        else:
            column = self._joined.take(pa.array(picked))
        if not len(column):
            return 0, 0
        data, offsets = column_data(column)
        text = memoryview(data)[int(offsets[0]) + 1 : int(offsets[-1])]
        return extend_crc(0, text), len(text)

    def crcs(self, rows: Array, starts: Array) -> tuple[Array, Array]:
        """The results of :meth:`crc` for many groups of rows at once (uint32, uint64).

        ``starts`` are the first positions of the groups in ``rows``, from 0 on; no group is empty.
        """
        if not len(starts):
            return np.empty(0, np.uint32), np.empty(0, np.uint64)
        data, offsets = column_data(self._joined.take(pa.array(rows)))
        return _parts(data, offsets[starts], offsets[np.append(starts[1:], len(rows))])

    def crcs_of_ranges(self, lows: Array, highs: Array) -> tuple[Array, Array]:
        """The results of :meth:`crc` for many ranges of rows at once, none empty (uint32, uint64)."""
        data, offsets = column_data(self._joined)
        return _parts(data, offsets[lows], offsets[highs])

    def matching(self, pattern: TopicsPattern) -> Picked:
        """The rows that match ``pattern``: ``(low, high)`` or ascending row numbers.

        Raises :exc:`~broker_core.errors.InvalidPattern` if RE2 does not support it.
        """
        return matching_rows(self._chunk, real_pattern(pattern))

    def matching_each(self, patterns: Sequence[TopicsPattern]) -> Iterator[tuple[int, Picked]]:
        """``(index of the pattern, its rows)`` for each of many patterns, in any order: cheaper than one by one."""
        return match_patterns(self._chunk, [real_pattern(pattern) for pattern in patterns])

    @staticmethod
    def joined_crcs(crcs: Array, sizes: Array, starts: Array) -> tuple[Array, Array]:
        """The results of :meth:`crc` for consecutive parts, for many groups of parts at once (uint32, uint64).

        ``crcs`` and ``sizes`` are of all parts, group by group and in the order of the hash; ``starts`` are the
        first parts of the groups. No part and no group is empty.
        """
        return joined_groups(crcs, sizes, starts)

    @staticmethod
    def hash_of_crc(crc: int) -> str:
        """The topics hash of names with the given CRC32C (0: no names): 8 hex digits."""
        return crc_text(crc)

    @staticmethod
    def hidden(
        namespace: NamespaceName | str, domain: str, names: pa.LargeStringArray
    ) -> pa.BooleanArray | None:
        """Mask of the local names of system topics, which brokers do not list; ``None`` if there are none."""
        return system_topic_mask(
            partitioned_local_names(_sound(names)), _namespace(namespace, domain), domain
        )

    @staticmethod
    def check(names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.LargeStringArray:
        """Local names as a ``large_string`` column; raises ``InvalidListing`` for the first invalid one."""
        return checked_local_names(names)

    @staticmethod
    def sort_key(names: pa.LargeStringArray) -> pa.LargeBinaryArray:
        """A column of bytes that sorts in the order of the hash; :meth:`names_of_key` is the inverse."""
        return hash_order_key(_sound(names))

    @staticmethod
    def names_of_key(keys: pa.LargeBinaryArray) -> pa.LargeStringArray:
        """The names of a column that :meth:`sort_key` gave."""
        return names_of_key(_sound(keys))

    @staticmethod
    def sorted_rows(column: pa.LargeBinaryArray | pa.LargeStringArray) -> Array:
        """The rows of a column in the order of its bytes (int64); no value may have a NUL."""
        return sorted_rows(_sound(column))

    def __repr__(self) -> str:
        return f"<EncodedNames of {self.domain}://{self.namespace}: {len(self)}>"


def _parts(data: pa.Buffer, starts: Array, stops: Array) -> tuple[Array, Array]:
    """The CRCs and the sizes of parts of a text, each without the comma that it begins with."""
    begins = starts + 1
    return crcs_of_parts(memoryview(data), begins, stops), (stops - begins).astype(np.uint64)


def _sound(column: Any) -> Any:
    """A column, after a check of its offsets and characters. Raises :exc:`InvalidListing`."""
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise InvalidListing(f"a column that is none: {error!s:.200}") from None
    return column


def _namespace(namespace: NamespaceName | str, domain: str) -> NamespaceName:
    if domain not in DOMAINS:
        raise InvalidListing(f"{domain!r:.50} is no domain: write {' or '.join(map(repr, DOMAINS))}")
    return NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
