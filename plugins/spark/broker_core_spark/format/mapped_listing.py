"""A listing of the core over mapped columns: nothing is copied, and what only some steps need is made when they come.

Answers from postings need the encoded names, and for the rest of the core the names. What patterns match (``matched``)
is only needed where the listing is changed or filtered by a pattern that nobody precomputed, and then it is made once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.column_sort import sorted_rows
from broker_core.listing import Listing
from broker_core.listing_columns import row_type
from broker_core.listing_memo import Memo
from broker_core.name_columns import column_data, contains, with_ends, without_ends
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.partition_columns import partitioned_local_names

__all__ = ["MappedListing"]

_LAZY: Final = frozenset({"matched", "matched_offsets", "by_matched", "has_newline"})


class MappedListing(Listing):
    """The topics of a namespace in one mode, over columns that are checked already.

    ``fields`` and ``joined`` (``large_binary``) have the names in the order of the hash, the first ``others`` of them
    non-persistent.
    """

    __slots__ = ("_joined_column", "_others")

    def __init__(
        self,
        namespace: NamespaceName,
        mode: Mode,
        fields: pa.LargeBinaryArray,
        joined: pa.LargeBinaryArray,
        others: int,
    ) -> None:
        # Not the core's own constructor: that wants all columns at once.
        self.namespace = namespace
        self.mode = mode
        self.fields, self.field_offsets = column_data(fields)
        self.joined, self.joined_offsets = column_data(joined)
        self._joined_column = joined
        self._others = others
        self._places = None
        self._hash = None
        self._last_range = None
        size = int(self.joined_offsets[-1] - self.joined_offsets[0])
        self.memo = Memo(8 * 1024 + size // 16)

    def __getattr__(self, name: str) -> Any:
        """The columns that are made when they are first asked for. Two threads at once make the same."""
        if name not in _LAZY:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        forms: list[pa.LargeStringArray] = []
        for domain, part in (
            (NON_PERSISTENT, self._joined_column[: self._others]),
            (PERSISTENT, self._joined_column[self._others :]),
        ):
            if len(part):
                names = without_ends(part, len(f",{domain}://{self.namespace}/"), 0)
                forms.append(with_ends(partitioned_local_names(names), f"{self.namespace}/", ""))
        matched = pa.concat_arrays(forms) if forms else pa.array([], pa.large_string())
        order: np.ndarray[Any, Any] | None = None
        if len(matched) > 1 and not pc.all(pc.less_equal(matched[:-1], matched[1:])).as_py():
            order = sorted_rows(matched).astype(row_type(len(matched)), copy=False)
            matched = matched.take(pa.array(order))
        self.has_newline = contains(matched, "\n")
        self.by_matched = order
        self.matched_offsets = column_data(matched)[1]
        self.matched = matched
        return object.__getattribute__(self, name)

    @property
    def column_bytes(self) -> int:
        """Bytes that the columns hold in memory: what is mapped takes none."""
        try:
            matched = object.__getattribute__(self, "matched")
            order = object.__getattribute__(self, "by_matched")
        except AttributeError:
            return 0
        return int(matched.nbytes) + (0 if order is None else 2 * int(order.nbytes))
