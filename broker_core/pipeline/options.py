"""What an operator decides about the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["PipelineOptions"]


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """``evaluate`` false: no pattern is ever applied here. ``unsupported``: what a pattern gets that RE2 refuses.

    ``max_length`` counts UTF-16 units of a pattern; ``time_budget`` is in seconds, for permits, chain and the begin of
    the write together, and below the 30 s that clients wait. ``selecting_keys`` are the properties that are counted in
    :attr:`Pipeline.questions`.
    """

    evaluate: bool = True
    unsupported: Literal["unfiltered", "error"] = "unfiltered"
    max_length: int = 1024
    time_budget: float = 28.0
    selecting_keys: frozenset[str] = frozenset()

    def is_long(self, request: ListingRequest) -> bool:
        """Whether a pattern is longer than is ever compiled, and so than is worth remembering."""
        return request.pattern is not None and len(request.pattern.raw) > self.max_length
