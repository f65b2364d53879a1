"""Patterns that RE2 does not support: refused or without effect, by ``patterns.unsupported``; others are applied.

With the operator's options of the pipeline, which have it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.errors import Cause, ListingFailed
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import ListingRequest
from broker_core.settings import PatternsSettings

__all__ = ["PipelineOptions", "applied_pattern", "listing_plan"]


@dataclass(slots=True)
class PipelineOptions:
    """Options of the pipeline, from the settings.

    ``patterns`` is the table of settings; ``time_budget`` is in seconds, for permits, chain and the start of the
    write together, and below the 30 s that clients wait. ``selecting_keys`` are the properties that are counted in
    :attr:`Pipeline.questions`. ``guarded`` is a plugin that holds its own listings, as default listers do.
    """

    patterns: PatternsSettings = field(default_factory=PatternsSettings)
    time_budget: float = 28.0
    selecting_keys: frozenset[str] = frozenset()
    guarded: str | None = None

    def is_long(self, request: ListingRequest) -> bool:
        """Whether a pattern is too long to be compiled, and so to be worth remembering."""
        return request.pattern is not None and len(request.pattern.raw) > self.patterns.max_length


def applied_pattern(request: ListingRequest, options: PipelineOptions) -> TopicsPattern | None:
    """The pattern that the core applies to a request, if any. Raises :exc:`ListingFailed` if the settings refuse it."""
    pattern = request.pattern if options.patterns.evaluate else None
    if pattern is None or pattern.supported:
        return pattern
    if options.patterns.unsupported == "error":
        raise ListingFailed(
            f"Unsupported topics pattern {request.topics_pattern!r:.400}: {pattern.reason}",
            cause=Cause.PATTERN,
            reason="bad_pattern",
        )
    return None


def listing_plan(
    request: ListingRequest, pattern: TopicsPattern | None, *, filtered_by_lister: bool = False
) -> str:
    """The way in which the pattern is applied, in the words of ``explain`` and of the metrics."""
    if filtered_by_lister:
        return "lister"
    if pattern is not None:
        return pattern.plan
    return "none" if request.pattern is None or request.pattern.supported else "unsupported"
