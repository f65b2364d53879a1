"""Whether a store creates a name only once, found out by creating one twice: all that is published rests on it."""

from __future__ import annotations

import secrets

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.store import Store

__all__ = ["check_creates_once"]


def check_creates_once(store: Store, fault: str) -> None:
    """Create a small file twice and delete it. Raises :exc:`StoreFailed` with ``fault`` unless the first one stays."""
    path = f"temporary/probe-{secrets.token_hex(8)}"
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
            pass  # a probe that stays must not hide why it was made
