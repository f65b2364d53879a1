"""The order of the places that cursors of pages name (KIP-1062), for servers and clients."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from broker_core.listing import utf16_key
from broker_core.wire.kafka.reader import ZERO_ID

__all__ = ["Order", "order_of", "ordered"]

#: The key by which places are compared.
Order: TypeAlias = tuple[Any, ...]

#: Fields in another order than that of the cursor: transactions are ordered by producers first.
_EARLIER: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("transactional_id", "producer_id"): ("producer_id", "transactional_id")
}


def ordered(fields: Sequence[str]) -> tuple[str, ...]:
    """The fields of a cursor in the order of comparison."""
    return _EARLIER.get(tuple(fields), tuple(fields))


def order_of(
    values: Mapping[str, Any],
    fields: Sequence[str],
    topic_id: uuid.UUID = ZERO_ID,
    *,
    text_key: Callable[[str], bytes] = utf16_key,
) -> Order:
    """The key of a place by its values: ``fields`` one after the other, texts in Java's order
    (UTF-16), by ``text_key``.

    Newer producers are before older ones; topics without a name are before all others, in the order of their ids.
    """
    found: list[Any] = []
    for each in fields:
        value = values[each]
        found.append(
            text_key(value) if isinstance(value, str) else -value if each == "producer_id" else value
        )
        if each == "topic_name":
            found.append(b"" if value else topic_id.bytes)
    return tuple(found)
