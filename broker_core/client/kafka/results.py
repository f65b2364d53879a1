"""The results of a request by item: a value, or the error of the item alone."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping
from typing import Generic, Literal, TypeAlias, TypeVar

from broker_core.client.client_errors import ClientError, UnexpectedAnswer

__all__ = ["PagedBy", "Results", "complete"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: The side that cut an answer into pages; ``None``: neither.
PagedBy: TypeAlias = Literal["server", "client"] | None


class Results(Mapping[K, V], Generic[K, V]):
    """The results by item: ``results[item]`` is its value, or raises its error. :meth:`all` raises the first error of
    any.

    Their order is that of the given items. ``paged_by`` says which side cut the answer into pages: the ``"server"``
    (KIP-1062), the ``"client"``, or neither (``None``).
    """

    def __init__(self, rows: Mapping[K, V | ClientError], paged_by: PagedBy = None) -> None:
        self._rows = dict(rows)
        self.paged_by = paged_by

    def __getitem__(self, item: K) -> V:
        row = self._rows[item]
        if isinstance(row, ClientError):
            raise row.copy()
        return row

    def rows(self) -> ItemsView[K, V | ClientError]:
        """The items with their values or errors, none of which is raised."""
        return self._rows.items()

    def __iter__(self) -> Iterator[K]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item: object) -> bool:
        return item in self._rows

    def all(self) -> dict[K, V]:
        """All values by item. Raises the error of the first item that has one."""
        return {item: self[item] for item in self._rows}

    @property
    def errors(self) -> dict[K, ClientError]:
        """The errors by item."""
        return {item: row for item, row in self._rows.items() if isinstance(row, ClientError)}

    def __repr__(self) -> str:
        failed = "".join(f", {item!r}: {error}" for item, error in list(self.errors.items())[:3])
        return f"<{type(self).__name__} of {len(self)}: {len(self.errors)} failed{failed}>"


def complete(keys: Iterable[K], rows: Mapping[K, V | ClientError]) -> dict[K, V | ClientError]:
    """The row of each item, in order; an error if there is none."""
    return {
        item: rows[item] if item in rows else UnexpectedAnswer(f"the answer has no row for {item}")
        for item in keys
    }
