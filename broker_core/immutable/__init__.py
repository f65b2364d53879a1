"""Immutable objects: sealed fields, and copies with some fields changed."""

from __future__ import annotations

from broker_core.immutable.sealed import Sealed, copied, seal, seal_fields, seal_value, value_maker

__all__ = [
    "Sealed",
    "copied",
    "seal",
    "seal_fields",
    "seal_value",
    "value_maker",
]
