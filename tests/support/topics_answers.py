"""The answer to a listing as a server sends it, made of names."""

from __future__ import annotations

from collections.abc import Iterable

from broker_core.listing.fields.topic_field import topic_field
from broker_core.wire.pulsar.commands import get_topics_response_head

__all__ = ["get_topics_response"]


def get_topics_response(
    request_id: int,
    topics: Iterable[str],
    *,
    topics_hash: str | None,
    filtered: bool,
    changed: bool = True,
) -> bytes:
    """The whole frame for topics that are not encoded yet; for few of them."""
    fields = b"".join(map(topic_field, topics))
    head, tail = get_topics_response_head(
        request_id, len(fields), topics_hash=topics_hash, filtered=filtered, changed=changed
    )
    return head + fields + tail
