"""One namespace in memory: its listing, and the values of the selecting properties as columns of codes."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.catalog.loading import load_names
from broker_core.catalog.records import Change
from broker_core.listing import Listing
from broker_core.listing_splice import locate
from broker_core.name_columns import with_ends
from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.selection import Selection

__all__ = ["Snapshot", "empty_snapshot", "load_snapshot"]

_NO_VALUE: Final = -1
#: Selections by properties that one snapshot remembers, and the bytes of each that are worth it.
_REMEMBERED: Final = 256
_MOST_REMEMBERED_BYTES: Final = 4 * 1024 * 1024

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _PropertyColumn:
    """The value of one property for each row of the listing, as a code; ``codes[row]`` is -1 where there is none."""

    values: dict[str, int]
    codes: _Array

    def rows_with(self, value: str) -> _Array:
        code = self.values.get(value)
        if code is None:
            return np.zeros(len(self.codes), bool)
        rows: _Array = self.codes == code
        return rows


class Snapshot:
    """The topics of a namespace in one mode at one version; immutable, but for what it remembers."""

    def __init__(self, version: int, listing: Listing, properties: Mapping[str, _PropertyColumn]) -> None:
        self.version = version
        self.listing = listing
        self._properties = dict(properties)
        self._selections: OrderedDict[tuple[tuple[str, str], ...], Selection] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes that this holds, the room for what it remembers included."""
        codes = sum(
            int(column.codes.nbytes) + 100 * len(column.values) for column in self._properties.values()
        )
        return self.listing.nbytes + codes + (codes and min(codes, _MOST_REMEMBERED_BYTES))

    def select(self, pairs: Mapping[str, str]) -> Selection:
        """The topics that have all of these properties; ``pairs`` are of selecting keys only, at least one."""
        key = tuple(sorted(pairs.items()))
        found = self._selections.get(key)
        if found is not None:
            return found
        keep: _Array | None = None
        for name, value in key:
            rows = self._properties[name].rows_with(value)
            keep = rows if keep is None else keep & rows
        assert keep is not None
        selection = self.listing.rows(np.flatnonzero(keep))
        if selection.remembered_bytes * _REMEMBERED <= _MOST_REMEMBERED_BYTES or not self._selections:
            self._selections[key] = selection
            if len(self._selections) > _REMEMBERED:
                self._selections.popitem(last=False)
        return selection

    def moved(self, version: int, changes: Iterable[Change]) -> Snapshot:
        """The same after these changes, by splicing columns."""
        mode = self.listing.mode
        before: dict[
            str, bool
        ] = {}  # each name that a change touched, and whether it is listed after all of them
        properties: dict[str, Mapping[str, str]] = {}
        for change in changes:
            if not mode.lists(change.name.domain):
                continue
            for name in change.removed:
                before[name] = False
            for name in change.listed_after.names(str(change.name)):
                before[name] = True
                properties[name] = change.properties_after
        removed = [name for name, listed in before.items() if not listed]
        added = [name for name, listed in before.items() if listed]
        listing = self.listing.with_changes(removed, added)
        if not self._properties:
            return Snapshot(version, listing, {})
        return Snapshot(version, listing, self._moved_columns(listing, removed, added, properties))

    def _moved_columns(
        self,
        listing: Listing,
        removed: Sequence[str],
        added: Sequence[str],
        properties: Mapping[str, Mapping[str, str]],
    ) -> dict[str, _PropertyColumn]:
        gone_rows, found = locate(self.listing, _names(removed))
        _, present_before = locate(self.listing, _names(added))
        new_rows, listed = locate(listing, _names(added))  # not listed: a system topic
        fresh = np.sort(new_rows[listed & ~present_before])
        moved: dict[str, _PropertyColumn] = {}
        for key, column in self._properties.items():
            codes = np.delete(column.codes, gone_rows[found])
            codes = np.insert(codes, fresh - np.arange(len(fresh)), _NO_VALUE)
            values = dict(column.values)
            for name, row, is_listed in zip(added, new_rows.tolist(), listed.tolist(), strict=True):
                if is_listed:
                    value = properties[name].get(key)
                    codes[row] = _NO_VALUE if value is None else values.setdefault(value, len(values))
            moved[key] = _PropertyColumn(values, codes)
        return moved


def _names(names: Sequence[str]) -> pa.LargeStringArray:
    return pa.array(names, pa.large_string())


def empty_snapshot(namespace: NamespaceName, mode: Mode, property_keys: Sequence[str]) -> Snapshot:
    """The snapshot of a namespace that never had a topic."""
    columns = {key: _PropertyColumn({}, np.empty(0, np.int32)) for key in property_keys}
    return Snapshot(0, Listing.from_columns(namespace, mode), columns)


def load_snapshot(
    connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str]
) -> Snapshot:
    """Read a namespace; ``connection`` is within a transaction, so that version and topics are of one state."""
    row = connection.execute(
        "SELECT id, version FROM namespaces WHERE name = ?", (str(namespace),)
    ).fetchone()
    if row is None:
        return empty_snapshot(namespace, mode, property_keys)
    number, version = row
    loaded = {
        domain: load_names(connection, number, code, property_keys)
        for code, domain in enumerate(DOMAINS)
        if mode.lists(domain)
    }
    # What is in the file was checked when it was written.
    listing = Listing.from_columns(
        namespace,
        mode,
        *(loaded[domain].names if domain in loaded else None for domain in DOMAINS),
        check=False,
    )
    columns: dict[str, _PropertyColumn] = {}
    if property_keys:
        full = [with_ends(part.names, f"{domain}://{namespace}/", "") for domain, part in loaded.items()]
        rows = listing.positions(pa.concat_arrays(full))
        listed = rows >= 0  # system topics are not
        for key in property_keys:
            values = pa.concat_arrays([part.properties[key] for part in loaded.values()]).dictionary_encode()
            codes = np.full(len(listing), _NO_VALUE, np.int32)
            found = values.indices.fill_null(_NO_VALUE).to_numpy(zero_copy_only=False)
            codes[rows[listed]] = found[listed]
            columns[key] = _PropertyColumn(
                {value: code for code, value in enumerate(values.dictionary.to_pylist())}, codes
            )
    # Building needs more than twice what stays: give it back to the system, not to the next build.
    pa.default_memory_pool().release_unused()
    return Snapshot(int(version), listing, columns)
