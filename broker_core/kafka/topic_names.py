"""The names that a topic can have in Kafka, one by one and as columns.

By the rules of Kafka's ``Topic``: letters and digits of ASCII, ``.``, ``_`` and ``-``, 1 to 249 of them, but not ``.``
or ``..``; and names that are equal with ``_`` for ``.`` collide.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import column_data

__all__ = [
    "GROUPS_TOPIC",
    "INTERNAL",
    "LONGEST",
    "TRANSACTIONS_TOPIC",
    "internal_names",
    "is_legal",
    "legal_names",
    "why_illegal",
]

#: Topics whose partitions keep groups, and transactions: the leader of a partition knows those in it.
GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
#: Kafka's internal topics; only these names, not all that begin with ``__``.
INTERNAL: Final = frozenset({GROUPS_TOPIC, "__share_group_state", TRANSACTIONS_TOPIC})
#: Characters of a name.
LONGEST: Final = 249

_LEGAL: Final = re.compile(r"(?!\.{1,2}\Z)[a-zA-Z0-9._-]{1,249}\Z")
_DOTS: Final = pa.array([b".", b".."], pa.large_binary())
_INTERNAL: Final = pa.array([name.encode() for name in sorted(INTERNAL)], pa.large_binary())
_Array = np.ndarray[Any, Any]
#: For each byte whether a name cannot have it.
_BAD: Final = np.array([re.fullmatch(rb"[a-zA-Z0-9._-]", bytes([byte])) is None for byte in range(256)])


def is_legal(name: str) -> bool:
    """Whether a topic of Kafka can have this name."""
    return _LEGAL.match(name) is not None


def why_illegal(name: str) -> str | None:
    """Kafka's message for an illegal name; ``None`` for a legal one."""
    if is_legal(name):
        return None
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name.encode("utf-16-le")) // 2 > LONGEST:
        why = f"the length of '{name}' is longer than the max allowed length {LONGEST}"
    else:
        why = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {why}"


def legal_names(names: pa.LargeBinaryArray) -> _Array | None:
    """A mask of the names that are legal in Kafka; ``None`` if all are."""
    if not len(names):
        return None
    data, offsets = column_data(names)
    sizes = np.diff(offsets)
    bad = (sizes == 0) | (sizes > LONGEST)
    wrong = _BAD[np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]]
    if wrong.any():
        before = np.concatenate(([0], np.cumsum(wrong)))
        edges = before[offsets - offsets[0]]
        bad |= edges[1:] > edges[:-1]
    if (sizes <= 2).any():
        bad |= pc.is_in(names, value_set=_DOTS).to_numpy(zero_copy_only=False)
    return ~bad if bad.any() else None


def internal_names(names: pa.LargeBinaryArray) -> _Array:
    """A mask of the names in :data:`INTERNAL`."""
    marks: _Array = pc.is_in(names, value_set=_INTERNAL).to_numpy(zero_copy_only=False)
    return marks
