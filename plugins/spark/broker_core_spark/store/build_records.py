"""Files that builds leave for later ones, and brokers do not read: records, totals of questions, learned questions.

They are no part of a generation, whose id depends on its contents alone. ``builds/<id>.json`` has builder, times and
sources of a generation, and ``builds/<id>.parquet`` the totals of its questions, for the comparison in the next build.

``learned/000000000012.jsonl`` has the learned questions of publication 12, if it had some: a build keeps those of
earlier ones, because a broker that has just started knows no question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from broker_core_spark.errors import DamagedFile
from broker_core_spark.format import canonical_json
from broker_core_spark.store.store import Store

__all__ = [
    "BUILDS",
    "LEARNED",
    "build_record_paths",
    "learned_paths",
    "read_build_record",
    "read_build_totals",
    "read_learned",
    "write_build_record",
    "write_learned",
]

BUILDS: Final = "builds"
LEARNED: Final = "learned"


def build_record_paths(generation: str) -> tuple[str, str]:
    """The paths of the record and of the totals of a generation."""
    return f"{BUILDS}/{generation}.json", f"{BUILDS}/{generation}.parquet"


def write_build_record(store: Store, generation: str, record: Mapping[str, Any], totals: bytes) -> None:
    """Write both files, in place of an earlier build's of an equal generation. Raises :exc:`StoreFailed`."""
    record_path, totals_path = build_record_paths(generation)
    store.replace(totals_path, totals)
    store.replace(record_path, canonical_json(record) + b"\n")


def read_build_record(store: Store, generation: str) -> dict[str, Any] | None:
    """The record of a generation. ``None`` without one, and for a file that is none, or of another generation."""
    try:
        record = json.loads(store.get(build_record_paths(generation)[0], limit=64 * 1024 * 1024) or b"null")
    except (DamagedFile, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("generation") == generation else None


def read_build_totals(store: Store, generation: str) -> bytes | None:
    """The bytes of a generation's totals. ``None`` without them, and for a file that is too large for them."""
    try:
        return store.get(build_record_paths(generation)[1], limit=512 * 1024 * 1024)
    except DamagedFile:
        return None


def learned_paths(store: Store) -> list[str]:
    """The paths of all files of learned questions, the newest first."""
    return [path for _, path in store.numbered(f"{LEARNED}/", ".jsonl")]


def read_learned(store: Store) -> tuple[str, bytes]:
    """(path, bytes) of the newest file of learned questions; two empty values without one."""
    for path in learned_paths(store):
        data = store.get(path, limit=512 * 1024 * 1024)
        if data is not None:  # else a gc removed it meanwhile
            return path, data
    return "", b""


def write_learned(store: Store, number: int, data: bytes) -> None:
    """Write the learned questions of a publication. Raises :exc:`StoreFailed`."""
    store.put_new(f"{LEARNED}/{number:012}.jsonl", data)
