"""Patterns that RE2 does not support: refused or without effect, by ``patterns.unsupported``; others are applied."""

from __future__ import annotations

from broker_core.errors import Cause, ListingFailed
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.plugin_api import ListingRequest

__all__ = ["applied_pattern", "listing_plan"]


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
