"""Tracing: whether its libraries are installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.plugin_api import Check
from broker_core.redaction import without_credentials

if TYPE_CHECKING:
    from broker_core.settings import TracingSettings

__all__ = ["tracing_checks"]

_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def tracing_checks(settings: TracingSettings | None) -> Iterator[Check]:
    """A finding about the libraries for tracing, and the address that spans go to. Nothing is sent."""
    if settings is None:
        return
    try:
        from broker_core.tracing import Tracing  # noqa: F401 - whether it can be imported
    except ImportError as error:
        yield Check.error(
            "tracing",
            "it needs the libraries of the extra otel, opentelemetry-sdk and "
            f"opentelemetry-exporter-otlp-proto-http: {error}",
        )
        return
    named = next((name for name in _VARIABLES if os.environ.get(name)), None)
    if settings.endpoint:
        yield Check.ok("tracing", f"spans go to {without_credentials(settings.endpoint, value=True)}")
    elif named is not None:
        yield Check.ok("tracing", f"spans go where {named} says")
    else:
        yield Check.warning(
            "tracing", f"spans go to a collector on this machine, port 4318: set endpoint, or {_VARIABLES[1]}"
        )
