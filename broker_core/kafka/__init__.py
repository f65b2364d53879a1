"""Models of Kafka's administration, without sockets and without storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.kafka.topic_names import (
        GROUPS_TOPIC,
        INTERNAL,
        LONGEST,
        TRANSACTIONS_TOPIC,
        internal_names,
        is_legal,
        legal_names,
        why_illegal,
    )

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

__getattr__ = lazy_exports(
    __name__,
    {
        "GROUPS_TOPIC": ".topic_names",
        "INTERNAL": ".topic_names",
        "LONGEST": ".topic_names",
        "TRANSACTIONS_TOPIC": ".topic_names",
        "internal_names": ".topic_names",
        "is_legal": ".topic_names",
        "legal_names": ".topic_names",
        "why_illegal": ".topic_names",
    },
)
