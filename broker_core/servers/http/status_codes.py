"""What an HTTP client is told for each cause: the one table of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.errors import Cause

__all__ = ["STATUS_CODES"]

STATUS_CODES: Final[Mapping[Cause, int]] = MappingProxyType(
    {
        Cause.PATTERN: 400,
        Cause.NAME: 400,
        Cause.BAD_REQUEST: 400,
        Cause.NOT_ALLOWED: 403,
        Cause.NOT_FOUND: 404,
        Cause.CONFLICT: 409,
        Cause.PRECONDITION: 412,
        Cause.TOO_LARGE: 413,
        Cause.UNAUTHENTICATED: 401,
        Cause.DENIED: 403,
        Cause.PERMITS: 503,
        Cause.QUEUE: 503,
        Cause.TIME: 504,
        Cause.PLUGIN: 502,
        Cause.CATALOG: 500,
        Cause.UPSTREAM: 502,
        Cause.UNAVAILABLE: 503,
        Cause.INTERNAL: 500,
    }
)
