"""The metrics of the HTTP API: requests by operation and status, their seconds, the bytes of their answers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final

from broker_core.metrics import Metrics

__all__ = ["HttpMetrics"]

_BOUNDS: Final = (1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0)
#: The statuses that are there from the start.
_KNOWN: Final = ("200", "304", "400", "401", "403", "404", "503", "504")


class HttpMetrics:
    """Declares them in the metrics of one broker; ``under_way`` are the requests that are answered at this moment."""

    def __init__(self, metrics: Metrics) -> None:
        self.under_way = 0
        self._requests = metrics.counter(
            "http_requests",
            "Requests of the HTTP API, by operation and status; cut: the client was gone, or cut off.",
            "operation",
            "status",
        )
        self._seconds = metrics.histogram(
            "http_request_seconds",
            "Seconds from the head of a request to the last byte of its answer.",
            _BOUNDS,
            "operation",
        )
        self._bytes = metrics.counter(
            "http_response_bytes", "Bytes of the answers of the HTTP API, heads included.", "operation"
        )
        metrics.gauge(
            "http_requests_under_way", "Requests of the HTTP API under way.", lambda: self.under_way
        )

    def expect(self, operations: Iterable[str]) -> None:
        """Show these operations from now on, with 0."""
        for operation, status in product(operations, _KNOWN):
            self._requests.add(0, operation, status)
            self._bytes.add(0, operation)
            self._seconds.of(operation)

    def answered(self, operation: str, status: int | None, seconds: float, size: int) -> None:
        """Count an answer to a request; ``status`` is ``None`` if the client did not get all of it."""
        self._requests(operation, "cut" if status is None else str(status))
        self._seconds.of(operation).observe(seconds)
        self._bytes.add(size, operation)
