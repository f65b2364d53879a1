"""The metrics of Kafka requests: by API and error, and their seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from broker_core.metrics import Metrics
from broker_core.wire.kafka import Encoded, ErrorCode, RawRows

__all__ = ["CLOSED", "CUT", "RequestMetrics", "error_in"]

#: The label of a request that got no answer: its connection was closed.
CLOSED: Final = "closed"
#: The label of a request whose client had gone before its answer was there.
CUT: Final = "cut"

_BOUNDS: Final = (2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 25.0)
#: The labels that appear from the start: no error, and failures of the server.
_KNOWN: Final = ("NONE", CLOSED, "REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR")
#: Rows of an answer that are looked at for an error.
_ROWS: Final = 100
#: Rows of a cluster's answer that are decoded for that, and the bytes of one: a row with an error is small.
_DECODED: Final = 3
_DECODED_BYTES: Final = 4 * 1024
_NAMES: Final[Mapping[int, str]] = {code.value: code.name for code in ErrorCode}


class RequestMetrics:
    """Counts Kafka requests in the metrics of one broker."""

    def __init__(self, metrics: Metrics, apis: Iterable[str] = ()) -> None:
        """``apis`` are shown from now on, with 0."""
        self._requests = metrics.counter(
            "kafka_requests",
            "Requests of Kafka clients by API, and by the error of the answer, or of the first row that has one: "
            "NONE, a code of Kafka, closed (no answer: the connection was closed), cut (the client was gone).",
            "api",
            "error",
        )
        self._seconds = metrics.histogram(
            "kafka_request_seconds",
            "Seconds from a request of a Kafka client to its answer, before it is written.",
            _BOUNDS,
            "api",
        )
        for api in apis:
            self._seconds.of(api)
            for error in _KNOWN:
                self._requests.add(0, api, error)

    def ended(self, api: str, error: str, seconds: float) -> None:
        """Count a request that ended with this label."""
        self._requests.counts[api, error] += 1
        self._seconds.of(api).observe(seconds)


def error_in(answer: Mapping[str, Any]) -> str:
    """The label of an answer with these fields."""
    return _NAMES.get(_error_in(answer), "other")


def _error_in(answer: Mapping[str, Any]) -> int:
    """The error of an answer, or of the first of its rows that has one."""
    code: int = answer.get("error_code", 0)
    if code:
        return code
    for value in answer.values():
        if isinstance(value, Encoded):
            code = value.error
        elif isinstance(value, RawRows):
            code = next(filter(None, map(_error_of, value.few(_DECODED, _DECODED_BYTES))), 0)
        elif isinstance(value, list):
            code = next(filter(None, map(_error_of, islice(value, _ROWS))), 0)
        if code:
            return code
    return 0


def _error_of(row: object) -> int:
    if not isinstance(row, dict):
        return 0
    code: int | None = row.get("error_code")
    if code is None:  # all partitions of a topic have the same code
        partitions = row.get("partition_responses") or row.get("partitions")
        return partitions[0].get("error_code", 0) if partitions and isinstance(partitions, list) else 0
    return code
