"""One namespace in memory: its listing, and the values of the selecting properties as columns of codes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog.properties import properties_text
from broker_core.catalog.store.load_columns import load_names
from broker_core.catalog.store.namespace_change import read_version
from broker_core.change_log import CatalogVersion, Change, Changes
from broker_core.listing.listing import Listing, Selection, listing_of_locals
from broker_core.memory.bounded_cache import BoundedCache
from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.names.listed_names import ListedNames
from broker_core.names.name_columns import with_ends
from broker_core.names.partition_suffix import PARTITION_SUFFIX

__all__ = ["Snapshot", "SnapshotRest", "expected_bytes", "load_snapshot", "only_mode"]

_NO_VALUE: Final = -1
#: Of this many topics or fewer, a selection by properties takes well under a millisecond.
_QUICK_TOPICS: Final = 50_000
#: So many values that came by changes are looked up besides the columns; with more it is time to read anew.
_MOST_NEW_VALUES: Final = 50_000
#: Room for remembered selections; a larger namespace has as much as its columns of codes take.
_LEAST_REMEMBERED_BYTES: Final = 64 * 1024
_TEXT: Final = pa.large_string()
#: Bytes that a name which came by a change is taken to need in all columns.
_MOVED_NAME: Final = 512

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _PropertyColumn:
    """The value of one property of each row of the listing, as a code; -1 where it has none.

    Codes below ``len(values)`` are positions in ``values``, those above are in ``new_values``.
    """

    codes: _Array
    values: pa.LargeStringArray
    new_values: Mapping[str, int]

    def code(self, value: str) -> int:
        """The code of a value, -1 where no topic ever had it."""
        new = self.new_values.get(value)
        if new is not None:
            return new
        found: int = pc.index(self.values, pa.scalar(value, _TEXT)).as_py()
        return found

    def rows_with(self, value: str) -> _Array | None:
        """Which rows have this value; ``None``: none has."""
        code = self.code(value)
        return None if code == _NO_VALUE else self.codes == np.int32(code)

    def moved(
        self, gone: _Array, put_before: _Array, values_at: Sequence[tuple[int, str | None]]
    ) -> _PropertyColumn:
        """Without the rows ``gone``, with a row put in front of each of ``put_before``, then ``values_at`` rows set."""
        codes = np.insert(np.delete(self.codes, gone), put_before, _NO_VALUE)
        new_values = dict(self.new_values)
        for row, value in values_at:
            code = _NO_VALUE
            if value is not None:
                code = new_values.get(value, _NO_VALUE)
                if code == _NO_VALUE:
                    code = self.code(value)
                if code == _NO_VALUE:
                    code = new_values[value] = len(self.values) + len(new_values)
            codes[row] = code
        return _PropertyColumn(codes, self.values, new_values)

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes + self.values.nbytes) + 150 * len(self.new_values)


#: A snapshot without its listing: kept where the listing itself may not be kept.
SnapshotRest = tuple[CatalogVersion, Mapping[str, _PropertyColumn]]


class Snapshot:
    """The topics of a namespace in one mode at one version; immutable, but for what it remembers."""

    def __init__(
        self, version: CatalogVersion, listing: Listing, columns: Mapping[str, _PropertyColumn] | None = None
    ) -> None:
        self.version = version
        self.listing = listing
        self._columns = dict(columns or {})
        codes = sum(int(column.codes.nbytes) for column in self._columns.values())
        self._selections: BoundedCache[str, Selection] = BoundedCache(
            max(codes, _LEAST_REMEMBERED_BYTES) if self._columns else 0
        )

    @classmethod
    def of_nothing(
        cls, catalog_id: str, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str] = ()
    ) -> Snapshot:
        """The snapshot of a namespace that never had a topic."""
        none = _PropertyColumn(np.empty(0, np.int32), pa.array([], _TEXT), {})
        listing = Listing.from_columns(namespace, mode)
        return cls(CatalogVersion(catalog_id, 0), listing, dict.fromkeys(property_keys, none))

    @classmethod
    def of_rest(cls, listing: Listing, rest: SnapshotRest) -> Snapshot:
        """The snapshot of a listing and all the rest."""
        version, columns = rest
        return cls(version, listing, columns)

    @property
    def rest(self) -> SnapshotRest:
        """All but the listing, and what was remembered of it."""
        return self.version, self._columns

    @property
    def nbytes(self) -> int:
        """Bytes that this holds, the room for what it remembers included."""
        return (
            self.listing.nbytes
            + sum(column.nbytes for column in self._columns.values())
            + self._selections.limit
        )

    @property
    def worn(self) -> bool:
        """Whether so much was changed that reading anew is better than moving it once more."""
        return any(len(column.new_values) > _MOST_NEW_VALUES for column in self._columns.values())

    def moved_bytes(self, changes: Changes) -> int:
        """About the :attr:`nbytes` after :meth:`moved`: never less, as a rule."""
        changed = sum(len(change.listed_after) for change in changes)
        return self.nbytes + changed * (_MOVED_NAME + 8 * len(self._columns))

    def worth_moving(self, changes: Changes) -> bool:
        """Whether :meth:`moved` is less work than reading anew: each changed name costs as much as a hundred topics."""
        changed = sum(len(change.listed_before) + len(change.listed_after) for change in changes)
        return changed <= 50 + len(self.listing) // 100

    @property
    def selecting_bytes(self) -> int:
        """What :meth:`select` may take until it has found the rows, and what these take."""
        return 16 * len(self.listing)

    def selected_now(self, pairs: Mapping[str, str], *, quick: bool = True) -> Selection | None:
        """The topics that have all of these properties, if that takes no time; else ``None``: see :meth:`select`.

        ``quick`` says whether there is time for what takes well under a millisecond.
        """
        found = self._selections.get(properties_text(pairs))
        if found is None and quick and len(self.listing) <= _QUICK_TOPICS:
            return self.select(pairs)
        return found

    def select(self, pairs: Mapping[str, str]) -> Selection:
        """The topics that have all of these properties (of selecting keys); any thread may ask."""
        selection = self._selected(pairs)
        text = properties_text(pairs)
        self._selections.put_first(text, selection, selection.remembered_bytes + 4 * len(text))
        return selection

    def _selected(self, pairs: Mapping[str, str]) -> Selection:
        keep: _Array | None = None
        for key, value in pairs.items():
            rows = self._columns[key].rows_with(value) if key in self._columns else None
            if rows is None:
                return self.listing.rows(np.empty(0, np.int64))
            keep = rows if keep is None else keep & rows
        return self.listing.all() if keep is None else self.listing.rows(np.flatnonzero(keep))

    def moved(self, version: CatalogVersion, changes: Iterable[Change]) -> Snapshot:
        """The same after these changes, oldest first, by splicing columns."""
        mode = self.listing.mode
        listed: dict[str, bool] = {}  # each name that a change touched: is it listed after all of them?
        properties: dict[str, Mapping[str, str]] = {}
        for change in changes:
            if not mode.lists(change.name.domain):
                continue
            if not self._columns and change.listed_before == change.listed_after:
                continue  # other properties, of which none selects
            for name in change.removed:
                listed[name] = False
            for name in change.listed_after.names(str(change.name)):
                listed[name] = True
                properties[name] = change.properties_after
        removed = [name for name, stays in listed.items() if not stays]
        added = [name for name, stays in listed.items() if stays]
        listing = self.listing.with_changes(removed, added) if listed else self.listing
        if not self._columns:
            return Snapshot(version, listing)
        return Snapshot(version, listing, self._moved_columns(listing, removed, added, properties))

    def _moved_columns(
        self,
        listing: Listing,
        removed: Sequence[str],
        added: Sequence[str],
        properties: Mapping[str, Mapping[str, str]],
    ) -> dict[str, _PropertyColumn]:
        gone, was_there = self.listing.locate(removed)
        _, known = self.listing.locate(added)
        rows, shown = listing.locate(added)  # not shown: a system topic
        new_rows = np.sort(rows[shown & ~known])
        put_before = new_rows - np.arange(len(new_rows))
        placed = [
            (name, row)
            for name, row, is_shown in zip(added, rows.tolist(), shown.tolist(), strict=True)
            if is_shown
        ]
        return {
            key: column.moved(
                gone[was_there], put_before, [(row, properties[name].get(key)) for name, row in placed]
            )
            for key, column in self._columns.items()
        }


def only_mode(connection: sqlite3.Connection, namespace: NamespaceName) -> Mode | None:
    """The mode that lists all topics of a namespace, where they are of one domain (or there are none)."""
    has = "SELECT 1 FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ? LIMIT 1"
    domains = [
        code for code in range(len(DOMAINS)) if connection.execute(has, (str(namespace), code)).fetchone()
    ]
    if len(domains) > 1:
        return None
    return Mode.NON_PERSISTENT if domains == [1] else Mode.PERSISTENT


_SIZES: Final = (
    "SELECT total(n), total(n * bytes), total(n > 1 OR listed <> '*'), total(properties) FROM ("
    "SELECT CASE listed WHEN '*' THEN 1 ELSE listed_names(listed) END AS n, listed,"
    " length(CAST(base AS BLOB)) AS bytes, ifnull(length(properties), 0) AS properties"
    " FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) AND domain = ?)"
)


def expected_bytes(
    connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str] = ()
) -> int:
    """About the :attr:`Snapshot.nbytes` that :func:`load_snapshot` will have, in a tenth of its time; never less, as a
    rule."""
    connection.create_function(
        "listed_names", 1, lambda text: len(ListedNames.parse(text)), deterministic=True
    )
    total = 0
    remembered = 0
    prefix = len(str(namespace)) + 1
    for code, domain in enumerate(DOMAINS):
        if not mode.lists(domain):
            continue
        names, text, parted, properties = map(
            int, connection.execute(_SIZES, (str(namespace), code)).fetchone()
        )
        if parted:
            text += names * len(f"{PARTITION_SUFFIX}{max(names - 1, 0)}")
        full = text + names * (len(domain) + 3 + prefix)  # domain://namespace/
        fields = full + names * 3  # a tag, and the length in one or two bytes
        offsets = 3 * 8 * (names + 2)
        order = 2 * 8 * names if parted or mode is Mode.ALL else 0
        total += fields + full + names + text + names * prefix + offsets + order + fields // 16
        if property_keys:
            total += properties
            remembered += 2 * 4 * names * len(property_keys)
    return total + remembered + 8 * 1024 + _LEAST_REMEMBERED_BYTES * bool(property_keys)


def load_snapshot(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    mode: Mode,
    property_keys: Sequence[str] = (),
) -> Snapshot:
    """Read a namespace; ``connection`` is within a transaction, so that version and topics are of one state."""
    version = read_version(connection, namespace)
    row = connection.execute("SELECT id FROM namespaces WHERE name = ?", (str(namespace),)).fetchone()
    if row is None:
        return Snapshot.of_nothing(version.catalog_id, namespace, mode, property_keys)
    (number,) = row
    loaded = {
        domain: load_names(connection, number, code, property_keys)
        for code, domain in enumerate(DOMAINS)
        if mode.lists(domain)
    }
    # What is in the file was checked when it was written.
    listing = listing_of_locals(
        namespace, mode, *(loaded[domain].names if domain in loaded else None for domain in DOMAINS)
    )
    columns: dict[str, _PropertyColumn] = {}
    if property_keys:
        names = pa.concat_arrays(
            [with_ends(part.names, f"{domain}://{namespace}/", "") for domain, part in loaded.items()]
        )
        rows = _rows_of(listing, names)
        del names
        for key in property_keys:
            values = pa.concat_arrays([part.properties.pop(key) for part in loaded.values()])
            columns[key] = _encoded(values, rows, len(listing))
    # Building needs more than twice what stays: give it back to the system, not to the next build.
    pa.default_memory_pool().release_unused()
    return Snapshot(version, listing, columns)


def _rows_of(listing: Listing, names: pa.LargeStringArray) -> _Array | None:
    """The row of each loaded name, -1 for one that is not listed (a system topic); ``None``: each is its own."""
    if len(listing) == len(names) and listing.names.equals(names):
        return None
    return listing.positions(names)


def _encoded(values: pa.LargeStringArray, rows: _Array | None, size: int) -> _PropertyColumn:
    encoded = values.dictionary_encode()
    found = encoded.indices.fill_null(_NO_VALUE).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    if rows is None:
        return _PropertyColumn(found, encoded.dictionary, {})
    codes = np.full(size, _NO_VALUE, np.int32)
    shown = rows >= 0
    codes[rows[shown]] = found[shown]
    return _PropertyColumn(codes, encoded.dictionary, {})
