"""The values that labels of the metrics may have: each is there from the start, with 0.

A counter that appears with its first event has no rate for it, and an alert on one that never happened has nothing to
look at. Any other value (the reason of a plugin's own ``ListingFailed``) appears when it is counted.
"""

from __future__ import annotations

from itertools import product
from typing import Final

__all__ = ["AUTHENTICATIONS", "CLOSURES", "LISTINGS", "NO_PLACE", "REFUSALS"]

#: Outcome and plan of listings.
LISTINGS: Final = (
    *product(("served", "unchanged"), ("none", "all", "literal", "range", "scan", "unsupported", "lister")),
    ("error", "unknown"),
)

#: Why a listing got no answer.
REFUSALS: Final = (
    "bad_namespace",
    "bad_request",
    "bad_pattern",
    "snapshot_memory",
    "lookups",
    "quota",
    "heap_timeout",
    "heap_queue",
    "heap",
    "direct_timeout",
    "direct",
    "time",
    "plugin_error",
    "plugin_deadline",
    "plugin_breaker",
    "plugin_threads",
    "plugin_answer",
    "plugin_topics",
    "refused",
    "denied",
    "gate",
    "bad_topics",
    "bad_details",
    "catalog",
    "upstream",
    "shrink_guard",
    "frame_limit",
    "failed",
    "internal",
)

#: Why the server closed a connection.
CLOSURES: Final = (
    "bad_frame",
    "handshake",
    "keep_alive",
    "stalled",
    "slow",
    "internal",
    "buffers",
    "places",
    "authentication",
    "frame_limit",
    "watch_ended",
    "expired",
    "revoked",
    "unanswered",
    "operator",
    "quota",
)

#: Denied actions, and the part that denies them. The actions are :data:`broker_core.access.asker.ACTIONS`, and
#: ``monitor``, about which only the rules are asked.
DENIALS: Final = (
    *product(("list", "describe", "lookup", "schema", "put_schema", "admin"), ("rules", "gates", "brokers")),
    ("monitor", "rules"),
)

#: Transport and outcome of authentications. The reasons of failures are
#: :data:`broker_core.access.authentication.REASONS`, and two of clients whose credentials are good.
AUTHENTICATIONS: Final = tuple(
    product(
        ("pulsar", "http", "kafka"),
        (
            "ok",
            "anonymous",
            "renewed",
            "no_credentials",
            "unknown_method",
            "bad_token",
            "expired",
            "not_yet_valid",
            "audience",
            "issuer",
            "no_subject",
            "bad_role",
            "bad_password",
            "certificate",
            "plugin",
            "refused_by_plugins",
            "overloaded",
            "catalog",
            "invalid_roles",
            "other_principal",
        ),
    )
)

#: Why a client gets no place: the bound that was reached.
NO_PLACE: Final = ("connections", "address", "files", "http")
