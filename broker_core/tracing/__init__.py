"""Spans of listings for OpenTelemetry; the library is imported only if tracing is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports
from broker_core.tracing.stages import NO_SPAN, Span, stage

if TYPE_CHECKING:
    from broker_core.tracing.open_telemetry import ListingSpan, Tracing

__all__ = ["NO_SPAN", "ListingSpan", "Span", "Tracing", "stage"]

__getattr__ = lazy_exports(__name__, {"ListingSpan": ".open_telemetry", "Tracing": ".open_telemetry"})
