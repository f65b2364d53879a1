"""The error for a connection refused before its protocol begins: at a proxy's preamble or the TLS handshake."""

from __future__ import annotations

from typing import Final

__all__ = ["REASONS", "RefusedArrival"]

#: The reasons, which are the values of a label of the metrics.
REASONS: Final = ("closed", "not_tls", "time", "alert", "certificate", "negotiation", "preamble")


class RefusedArrival(Exception):
    """The connection is to be closed. ``reason`` is one of :data:`REASONS`, the message is for the log.

    ``is_attempt`` says whether the client has tried something that cost the server time.
    """

    def __init__(self, reason: str, message: str, *, is_attempt: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.is_attempt = is_attempt
