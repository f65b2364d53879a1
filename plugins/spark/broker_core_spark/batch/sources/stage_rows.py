"""Rows of full and local names, split by namespace and domain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core.names import PERSISTENT, TopicName
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.build_errors import InvalidCatalogue

__all__ = ["rows_by_place", "without_namespace"]

_TEXT: Final = pa.large_string()


def rows_by_place(
    names: pa.LargeStringArray,
    namespaces: pa.LargeStringArray,
    domains: pa.LargeStringArray,
    values: Sequence[pa.LargeStringArray],
    default_namespace: str | None = None,
    wanted: Collection[str] | None = None,
) -> Iterator[tuple[str, str, pa.LargeStringArray, list[pa.LargeStringArray]]]:
    """(namespace, domain, local names, their ``values``) of each namespace and domain of some rows.

    Names of a namespace that is not ``wanted`` are left out; ``None`` takes all. Raises :exc:`InvalidCatalogue` for an
    invalid name.
    """
    if names.null_count:
        raise InvalidCatalogue("a row of the catalogue has no name (null)")
    # A full name has a head domain://tenant/namespace before its last slash, which has few different values.
    parts = pc.split_pattern(names, "/", max_splits=1, reverse=True)
    ends: Array = parts.offsets.to_numpy()
    is_local = pa.array(np.diff(ends) == 1)
    locals_ = parts.values.take(ends[1:] - 1)
    heads = parts.values.take(ends[:-1])
    if is_local.true_count:
        places = pc.coalesce(namespaces, pa.scalar(default_namespace, _TEXT))
        nowhere = pc.index(pc.and_(is_local, places.is_null()), True).as_py()
        if nowhere >= 0:
            raise InvalidCatalogue(without_namespace(names[nowhere].as_py()))
        own = pc.binary_join_element_wise(pc.fill_null(domains, PERSISTENT), places, pa.scalar("://", _TEXT))
        heads = pc.if_else(is_local, own, heads)
    encoded = heads.dictionary_encode()
    codes: Array = encoded.indices.to_numpy()
    if namespaces.null_count < len(namespaces):
        known = pc.extract_regex(encoded.dictionary, "://(?P<place>.*)").field("place").take(codes)
        differs = pc.index(pc.equal(known, namespaces), False).as_py()
        if differs >= 0:
            _parsed(names[differs].as_py())  # a name of no topic is in no namespace
            raise InvalidCatalogue(
                f"Topic {names[differs].as_py()[:200]!r} is not in namespace {namespaces[differs].as_py()[:200]}"
            )
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for head, (low, high) in zip(encoded.dictionary.to_pylist(), pairwise(bounds), strict=True):
        rows = order[low:high]
        found = locals_.take(rows)
        topic = _parsed(f"{head}/{found[0].as_py()}")
        if wanted is not None and str(topic.namespace) not in wanted:
            continue
        try:
            EncodedNames.check(found)
        except ValueError as error:  # of a name
            raise InvalidCatalogue(f"{error} (in {head})") from None
        yield str(topic.namespace), topic.domain, found, [column.take(rows) for column in values]


def _parsed(name: str) -> TopicName:
    """The topic of a full name. Raises :exc:`InvalidCatalogue`."""
    try:
        return TopicName.parse(name)
    except ValueError as error:
        raise InvalidCatalogue(str(error)) from None


def without_namespace(name: str) -> str:
    """The error of a local name that is in no namespace."""
    return f"{name[:200]!r} is a local name without a namespace: give a column 'namespace', or --namespace"
