"""Every error that broker-core raises, with the cause from which each transport makes an answer.

    BrokerCoreError
    |-- InvalidName              a name of a tenant, namespace or topic that does not parse
    |-- InvalidListing           topics that cannot be a listing of their namespace and mode
    |-- InvalidPattern           a topics pattern that is not a regular expression in any dialect
    |-- ListingFailed            no answer: the message for the client, and the cause
        |-- TooManyRequests      a limit of memory, places or time
        |-- ResponseTooLarge     the answer does not fit into a frame that the peer accepts

Parts with errors of their own (wire, permits, plugins, catalog, client) derive them from these, next to their code.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

from broker_core.counted import counted
from broker_core.errors.error_codes import Cause, ServerError
from broker_core.errors.error_codes import cause_of as cause_of
from broker_core.errors.error_codes import lookup_code as lookup_code

__all__ = [
    "BrokerCoreError",
    "Cause",
    "InvalidListing",
    "InvalidName",
    "InvalidPattern",
    "ListingFailed",
    "QuotaExceeded",
    "ResponseTooLarge",
    "ServerError",
    "TooManyRequests",
]


#: No code was given: the cause's code is used.
_BY_CAUSE: Final[Any] = object()


class BrokerCoreError(Exception):
    """The root of all errors that this package raises on purpose."""

    #: Whether the listing that failed with it was reported to metrics and logs.
    reported: bool = False


class InvalidName(BrokerCoreError, ValueError):
    """A name does not parse; the message says which and why."""


class InvalidListing(BrokerCoreError, ValueError):
    """Topics do not make a listing: a bad name, or a name of another namespace or mode."""


class InvalidPattern(BrokerCoreError, ValueError):
    """A topics pattern is not a regular expression in any dialect, or exceeds a bound on patterns."""


class ListingFailed(BrokerCoreError):
    """A listing has no answer. A failure is never an empty or shortened success:
    docs/explanation/promises.md#exact-or-an-error

    ``cause`` says why, and each transport sends its clients its own code for it; ``reason`` is a short label for
    metrics (never text of a client), ``plugin`` the plugin that failed, if one did. ``code`` is the code for a Pulsar
    client: the cause's, unless one is given, as for a relayed error of another broker; the cause then follows from the
    given code. ``counts`` marks a failure as a sign of trouble for other listings too: repeated failures that count
    make the broker leave a plugin alone for a while. Failures due to the request itself, or to the load, do not count,
    ``TooManyRequests`` never.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: Cause | None = None,
        code: ServerError = _BY_CAUSE,
        reason: str = "failed",
        plugin: str | None = None,
        counts: bool = True,
    ) -> None:
        _check(message, str, "message must be a string", "str(error)")
        if cause is not None:
            _check(cause, Cause, "cause must be a broker_core.Cause", "Cause.PLUGIN")
        _check(reason, str, "reason must be a string, a short label for metrics", "'failed'")
        if plugin is not None:
            _check(plugin, str, "plugin must be a string, the name of a plugin, or None", "None")
        _check(counts, bool, "counts must be a bool", "True")
        super().__init__(message)
        self.message = message
        if code is _BY_CAUSE:
            self.cause = cause or Cause.PLUGIN
            self.code = self.cause.pulsar
        else:
            self.code = _code(code)
            self.cause = cause or cause_of(self.code, otherwise=Cause.PLUGIN)
        self.reason = reason
        self.plugin = plugin
        self.counts = counts and self.code is not ServerError.TooManyRequests

    def copy(self) -> Self:
        """A copy of the failure, to be raised for another request: one exception would collect both tracebacks."""
        fresh = type(self).__new__(type(self), *self.args)
        fresh.__dict__.update(self.__dict__)
        return fresh


def _check(value: object, kind: type, rule: str, instead: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{rule} ({instead}), not {type(value).__name__}")


def _code(code: object) -> ServerError:
    """The member of a code, which may be given as a number of the protocol."""
    if isinstance(code, ServerError):
        return code
    if isinstance(code, int) and not isinstance(code, bool):
        try:
            return ServerError(code)
        except ValueError:
            raise ValueError(
                f"code {code} is no number of CommandError: write a broker_core.errors.ServerError, "
                "such as ServerError.MetadataError"
            ) from None
    known = isinstance(code, str) and code in ServerError.__members__
    instead = f"ServerError.{code}" if known else "one of it, such as ServerError.MetadataError"
    raise TypeError(
        f"code must be a broker_core.errors.ServerError, not {type(code).__name__}: write {instead}"
    )


class TooManyRequests(ListingFailed):
    """A limit of memory, of places in a queue or of time was reached; the client may try again later."""

    def __init__(self, message: str, *, reason: str, cause: Cause = Cause.PERMITS) -> None:
        super().__init__(message, cause=cause, code=ServerError.TooManyRequests, reason=reason)


class QuotaExceeded(TooManyRequests):
    """A quota of the client is used up; after ``retry_after`` seconds there may be room for one more request."""

    def __init__(self, quota: str, retry_after: float) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        super().__init__(
            f"The quota {quota!r} of this client is used up: ask again in {self.retry_after} s",
            reason="quota",
            cause=Cause.QUOTA,
        )


class ResponseTooLarge(ListingFailed):
    """The answer is larger than a frame that the peer accepts, which would make it close the connection."""

    def __init__(self, size: int, limit: int, topics: int) -> None:
        super().__init__(
            f"The listing of {counted(topics, 'topic')} is a frame of {size} bytes, over this client's limit of "
            f"{limit} bytes: "
            "ask with a narrower topics pattern, or raise max_message_size here and at the brokers",
            cause=Cause.TOO_LARGE,
            reason="frame_limit",
        )
        self.size = size
        self.limit = limit
