"""The operator's options of the pipeline: patterns, the time budget, and which plugin the shrink guard leaves alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.plugin_api import ListingRequest
from broker_core.settings import PatternsSettings

__all__ = ["PipelineOptions"]


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
