"""The changes of a table since a generation of it: a file in the store for each look, which brokers follow.

``changes/<generation>-000000000003.jsonl`` is the third look. It has the state of each name that changed since the
generation was built, also of names that changed back, so the newest file alone leads from the generation to the table,
after any earlier look.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import TypeAdapter

from broker_core_spark.errors import DamagedFile
from broker_core_spark.store.store import Store

__all__ = ["CHANGES", "MOST_CHANGED", "ChangedName", "TableChanges", "newest_changes", "write_changes"]

CHANGES: Final = "changes"
#: Names that a file has. With more the table is built again.
MOST_CHANGED: Final = 100_000
#: Looks that stay: a broker may be about to read the one before.
_KEPT: Final = 3

#: Namespace, domain and local name.
ChangedName = tuple[str, str, str]
#: A line of the file after the first: a changed name, and its properties or null.
_ROW: Final = TypeAdapter(tuple[str, str, str, dict[str, str] | None])


@dataclass(frozen=True, slots=True)
class TableChanges:
    """A look at a table at the time ``looked``: the properties of each changed name that is listed, else ``None``."""

    generation: str
    number: int
    looked: datetime
    names: Mapping[ChangedName, Mapping[str, str] | None]


def newest_changes(store: Store, generation: str, after: int = 0) -> TableChanges | None:
    """The newest look since a generation, or ``None`` unless its number is greater than ``after``.

    Raises :exc:`DamagedFile` for a file that is none.
    """
    number, path = next(iter(_looks(store, generation)), (0, ""))
    if number <= after:
        return None
    data = store.get(path, limit=256 * 1024 * 1024)
    if data is None:
        return None  # a later look has removed it meanwhile
    head, _, lines = data.partition(b"\n")
    try:
        if head.decode() != hashlib.sha256(lines).hexdigest():
            raise ValueError("its checksum is another one")
        looked, *rows = lines.splitlines()
        names = {row[:3]: row[3] for row in map(_ROW.validate_json, rows)}
        return TableChanges(generation, number, datetime.fromisoformat(json.loads(looked)), names)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedFile(f"{store.uri}/{path}: it is no file of changes: {error!s:.200}") from None


def write_changes(store: Store, changes: TableChanges) -> bool:
    """Write a look, and remove older ones. ``False``: another look has this number."""
    rows = [changes.looked.isoformat(), *([*name, state] for name, state in sorted(changes.names.items()))]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    path = f"{CHANGES}/{changes.generation}-{changes.number:012}.jsonl"
    if not store.put_new(path, hashlib.sha256(lines).hexdigest().encode() + b"\n" + lines):
        return False
    for _, old in _looks(store, changes.generation)[_KEPT:]:
        store.delete(old)
    return True


def _looks(store: Store, generation: str) -> Sequence[tuple[int, str]]:
    """(number, path) of the looks since a generation, the newest first."""
    return store.numbered(f"{CHANGES}/{generation}-", ".jsonl")
