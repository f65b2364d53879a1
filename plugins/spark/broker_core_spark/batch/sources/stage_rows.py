"""Staging rows of full and local names, namespace by namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import PERSISTENT, TopicName
from broker_core_spark.arrow_columns import Array, buffer_and_offsets, with_ends
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.staging.sorted_runs import SortedRun

__all__ = ["TakesNames", "stage_rows", "without_namespace"]

_TEXT: Final = pa.large_string()
_SLASH: Final = ord("/")
_SLASHES: Final = 4  # of a full name: domain://tenant/namespace/local


class TakesNames(Protocol):
    """A writer of names, such as :class:`~broker_core_spark.batch.staging.sorted_runs.SortedRunWriter`."""

    def add(
        self,
        namespace: str,
        domain: str,
        names: pa.LargeStringArray,
        properties: Sequence[pa.LargeStringArray],
        /,
    ) -> Iterator[SortedRun]:
        """Take local names, in any order and possibly repeated."""


def stage_rows(
    writer: TakesNames,
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    domains: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
    default_namespace: str | None = None,
) -> Iterator[SortedRun]:
    """Give rows to a writer, namespace by namespace. Raises :exc:`InvalidCatalogue` for an invalid name."""
    if names.null_count:
        raise InvalidCatalogue("a row of the catalogue has no name (null)")
    has_slash = pc.match_substring(names, "/")
    if has_slash.true_count:
        full = np.flatnonzero(has_slash.to_numpy(zero_copy_only=False))
        index = pa.array(full)
        yield from _stage_full(
            writer, names.take(index), namespaces.take(index), [column.take(index) for column in values]
        )
    if has_slash.false_count:
        index = pa.array(np.flatnonzero(~has_slash.to_numpy(zero_copy_only=False)))
        names = names.take(index)
        places = namespaces.take(index)
        if default_namespace is not None:
            places = pc.fill_null(places, default_namespace)
        if places.null_count:
            shown = names[int(pc.index(places.is_null(), True).as_py())].as_py()
            raise InvalidCatalogue(without_namespace(shown))
        places = with_ends(places, "", "/")
        prefixes = pc.binary_join_element_wise(
            pc.fill_null(domains.take(index), PERSISTENT), places, pa.scalar("://", _TEXT)
        )
        yield from _stage_by_prefix(writer, prefixes, names, [column.take(index) for column in values])


def without_namespace(name: str) -> str:
    """The error of a local name that is in no namespace."""
    return f"{name[:200]!r} is a local name without a namespace: give a column 'namespace', or --namespace"


def _stage_full(
    writer: TakesNames,
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
) -> Iterator[SortedRun]:
    """Stage full names. The part up to the fourth slash has few different values."""
    data, offsets = buffer_and_offsets(names)
    first, last = int(offsets[0]), int(offsets[-1])
    slashes = np.flatnonzero(np.frombuffer(data, np.uint8)[first:last] == _SLASH) + first
    counts = np.bincount(np.searchsorted(offsets, slashes, side="right") - 1, minlength=len(names))
    if (counts != _SLASHES).any():
        shown = names[int(np.argmax(counts != _SLASHES))].as_py()
        raise InvalidCatalogue(_why_no_topic(shown))
    # The same memory as a column of twice as many values: prefix, local name, prefix ...
    edges = np.repeat(offsets, 2)[:-1]
    edges[1::2] = slashes.reshape(-1, _SLASHES)[:, -1] + 1
    halves = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)
    heads = halves.take(pa.array(np.arange(0, len(halves), 2)))
    if namespaces.null_count < len(namespaces):
        said = pc.binary_join_element_wise(namespaces, pa.scalar("", _TEXT), pa.scalar("/", _TEXT))
        agrees = pc.equal(pc.extract_regex(heads, "://(?P<place>.*)").field("place"), said)
        if pc.any(pc.invert(agrees)).as_py():
            at = int(pc.index(agrees, False).as_py())
            raise InvalidCatalogue(
                f"Topic {names[at].as_py()[:200]!r} is not in namespace {namespaces[at].as_py()[:200]}"
            )
    yield from _stage_by_prefix(writer, heads, halves.take(pa.array(np.arange(1, len(halves), 2))), values)


def _stage_by_prefix(
    writer: TakesNames,
    heads: pa.LargeStringArray,
    locals_: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
) -> Iterator[SortedRun]:
    """Stage local names with their prefixes (``domain://tenant/namespace/``), one prefix after the other."""
    encoded = heads.dictionary_encode()
    codes: Array = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for code, head in enumerate(encoded.dictionary.to_pylist()):
        rows = order[bounds[code] : bounds[code + 1]]
        names = locals_.take(pa.array(rows))
        try:
            topic = TopicName.parse(f"{head}{names[0].as_py()}")
        except ValueError as error:
            raise InvalidCatalogue(str(error)) from None
        parts = [column.take(pa.array(rows)) for column in values]
        yield from writer.add(str(topic.namespace), topic.domain, names, parts)


def _why_no_topic(name: str) -> str:
    try:
        TopicName.parse(name)
    except ValueError as error:
        return str(error)
    return f"Invalid topic name {name[:200]!r}"
