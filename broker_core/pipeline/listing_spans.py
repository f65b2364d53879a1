"""What the spans of a listing say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.logs import LONGEST_TEXT, shown
from broker_core.pipeline.answer import Answer
from broker_core.plugin_api.listing_request import ListingRequest

if TYPE_CHECKING:
    from broker_core.pipeline.standing_answer import StandingAnswer

__all__ = ["answered", "asked", "refused"]


def asked(request: ListingRequest, asker: Asker, topics_pattern: str | None = None) -> dict[str, Any]:
    """Who asks what; ``topics_pattern`` is one that the request does not have yet."""
    pattern = request.topics_pattern if topics_pattern is None else topics_pattern
    return {
        "role": asker.role,
        "principal": asker.original_principal,
        "address": asker.remote_address or None,
        "transport": asker.transport,
        "namespace": str(request.namespace),
        "mode": request.mode.name,
        "pattern": None if pattern is None else shown(pattern[: LONGEST_TEXT + 1]),
        "page_limit": None if request.page is None else request.page.limit,
    }


def answered(answer: Answer | StandingAnswer, lister: str) -> dict[str, Any]:
    """What came of it, where there is an answer."""
    return {
        "outcome": "served" if answer.changed else "unchanged",
        "lister": lister,
        "plan": answer.plan,
        "topics": answer.topics,
        "bytes": answer.fields_size,
        "topics_hash": answer.topics_hash,
        "filtered": answer.filtered,
        "stale_s": answer.stale if isinstance(answer, Answer) else None,
    }


def refused(failure: ListingFailed) -> dict[str, Any]:
    """What came of it, where there is none. The message is left out: it may have text of anybody."""
    return {
        "outcome": "refused",
        "cause": failure.cause.name,
        "reason": failure.reason,
        "plugin": failure.plugin,
    }
