"""An answer that stays right for the same question while the default lister lists the same."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker_core.listing import Listing
from broker_core.pipeline.answers.answer import Answer, QuestionWarning
from broker_core.plugin_api import ListingRequest

if TYPE_CHECKING:
    from broker_core.metrics import QuestionKey

__all__ = ["ReusableAnswer"]


@dataclass(slots=True)
class ReusableAnswer:
    """The facts of an answer without its topics. ``question`` is without its asker.

    ``listing`` is the last listing for which it was right, by a weak reference. ``warnings`` are the question's, once
    they were looked for.
    """

    question: ListingRequest
    listing: weakref.ref[Listing]
    topics_hash: str
    topics: int
    fields_size: int
    filtered: bool
    changed: bool
    plan: str
    warnings: tuple[QuestionWarning, ...] | None = None
    #: What it is counted under: made once, since it is counted for each watcher that asks.
    key: QuestionKey = field(init=False)

    def __post_init__(self) -> None:
        question = self.question
        self.key = str(question.namespace), question.mode, question.topics_pattern, ()

    @classmethod
    def of(cls, request: ListingRequest, answer: Answer) -> ReusableAnswer | None:
        """The reusable part of an answer; ``None`` if it depends on more than the listing, the pattern and the
        client's hash.
        """
        if answer.source is None or request.properties:
            return None
        return cls(
            ListingRequest(request.namespace, request.mode, request.pattern),
            answer.source,
            answer.topics_hash,
            answer.topics,
            answer.fields_size,
            answer.filtered,
            answer.changed,
            answer.plan,
        )
