"""The attributes of the spans of listings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.access import Asker
from broker_core.errors import ListingFailed
from broker_core.logs import LONGEST_TEXT, shown
from broker_core.pipeline.answers.answer import Answer
from broker_core.pipeline.answers.question_text import QuestionText

if TYPE_CHECKING:
    from broker_core.pipeline.answers.reusable_answer import ReusableAnswer

__all__ = ["answered", "question_attributes", "refused"]


def question_attributes(question: QuestionText, asker: Asker) -> dict[str, Any]:
    """The asker and its question, as attributes of a span."""
    return {
        "role": asker.role,
        "principal": asker.original_principal,
        "address": asker.remote_address or None,
        "transport": asker.transport,
        "namespace": _shown(question.namespace),
        "mode": question.mode,
        "pattern": _shown(question.pattern),
        "page_limit": question.page_limit,
    }


def _shown(text: str | None) -> str | None:
    return None if text is None else shown(text[: LONGEST_TEXT + 1])


def answered(answer: Answer | ReusableAnswer, lister: str) -> dict[str, Any]:
    """The attributes of an answer."""
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
    """The attributes of a refusal. The message is left out: it may have text from anywhere."""
    return {
        "outcome": "refused",
        "cause": failure.cause.name,
        "reason": failure.reason,
        "plugin": failure.plugin,
    }
