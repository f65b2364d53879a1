"""``[tracing]``: spans of listings for OpenTelemetry."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from broker_core.settings.table import Table

__all__ = ["TracingSettings"]


class TracingSettings(Table):
    """``[tracing]``: spans of listings for OpenTelemetry, by OTLP over HTTP; without the table there are none."""

    endpoint: str = Field(
        description="http://HOST:PORT of the collector, which takes spans at /v1/traces; empty: as the standard "
        "variables OTEL_EXPORTER_OTLP_... say.",
    )
    sample: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="The share of listings that are traced, of those whose client says nothing of tracing.",
    )

    @field_validator("endpoint")
    @classmethod
    def _is_http(cls, endpoint: str) -> str:
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise ValueError("it is no http:// or https:// address")
        return endpoint.rstrip("/")
