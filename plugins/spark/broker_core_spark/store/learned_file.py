"""The learned questions of a store: one file of JSON lines for each build that had some.

A build keeps the learned questions of earlier ones: a broker that has just started knows no question. The file is no
part of a generation, because its times change while answers stay. ``learned/000000000012.jsonl`` is of publication 12.
"""

from __future__ import annotations

from typing import Final

from broker_core_spark.store.store import Store

__all__ = ["LEARNED", "learned_paths", "read_learned", "write_learned"]

LEARNED: Final = "learned"


def learned_paths(store: Store) -> list[str]:
    """The paths of all such files, the newest first."""
    return [path for _, path in store.numbered(f"{LEARNED}/", ".jsonl")]


def read_learned(store: Store) -> tuple[str, bytes]:
    """(path, bytes) of the newest file; two empty values without one."""
    for path in learned_paths(store):
        data = store.get(path, limit=512 * 1024 * 1024)
        if data is not None:  # else a gc removed it meanwhile
            return path, data
    return "", b""


def write_learned(store: Store, number: int, data: bytes) -> None:
    """Write the file of a publication. Raises :exc:`StoreFailed`."""
    store.put_new(f"{LEARNED}/{number:012}.jsonl", data)
