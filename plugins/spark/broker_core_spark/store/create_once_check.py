"""The check that a store creates each name only once. Publishing depends on it."""

from __future__ import annotations

import secrets
from typing import Final

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import Store

__all__ = ["PROBE", "check_creates_once"]

#: The beginning of the paths of these files.
PROBE: Final = "temporary/probe-"


def check_creates_once(store: Store, fault: str) -> None:
    """Create a small file twice and delete it. Raises :exc:`StoreFailed` with ``fault`` if it was created twice."""
    path = f"{PROBE}{secrets.token_hex(8)}"
    try:
        first = store.put_new(path, b"first")
        second = store.put_new(path, b"second")
        found = store.get(path, 64)
        if not first or second or found != b"first":
            raise StoreFailed(f"{store.uri}: {fault}")
    finally:
        try:
            store.delete(path)
        except StoreFailed:
            pass  # the reason of the check matters more
