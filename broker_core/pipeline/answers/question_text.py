"""The text of a client's question, also of one that was refused before it became a request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker_core.plugin_api import ListingRequest

__all__ = ["QuestionText"]


@dataclass(slots=True)
class QuestionText:
    """The parts of a question, of any length and unchecked. An unreadable part is ``None``.

    ``properties`` is read once at the most.
    """

    namespace: str | None
    mode: str | None = None
    pattern: str | None = None
    properties: Iterable[tuple[str, str]] = ()
    page_limit: int | None = None

    @classmethod
    def of(cls, request: ListingRequest, topics_pattern: str | None = None) -> QuestionText:
        """The text of a request; ``topics_pattern`` is a pattern that the request does not have yet."""
        return cls(
            str(request.namespace),
            request.mode.name,
            request.topics_pattern if topics_pattern is None else topics_pattern,
            request.properties.items(),
            None if request.page is None else request.page.limit,
        )
