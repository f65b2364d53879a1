"""Every error that broker-core raises, with the cause that each transport makes an answer of.

    BrokerCoreError
    |-- InvalidName              a name of a tenant, namespace or topic that does not parse
    |-- InvalidListing           topics that cannot be a listing of their namespace and mode
    |-- InvalidPattern           a topics pattern that is no regular expression in any dialect
    |-- ListingFailed            no answer: what a client is told, and the cause
        |-- TooManyRequests      a limit of memory, places or time
        |-- ResponseTooLarge     the answer does not fit into a frame that the peer accepts

Parts with errors of their own (wire, permits, plugins, catalog, client) derive them from these, next to their code.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

from broker_core.counted import counted
from broker_core.errors.causes import Cause, cause_of
from broker_core.errors.server_error import ServerError

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


#: No code was given: that of the cause.
_BY_CAUSE: Final[Any] = object()


class BrokerCoreError(Exception):
    """The root of all errors that this package raises on purpose."""

    #: Whether metrics and logs have the listing that ended with it.
    told: bool = False


class InvalidName(BrokerCoreError, ValueError):
    """A name does not parse; the message says which and why."""


class InvalidListing(BrokerCoreError, ValueError):
    """Topics do not make a listing: a bad name, or a name of another namespace or mode."""


class InvalidPattern(BrokerCoreError, ValueError):
    """A topics pattern is no regular expression in any dialect, or breaks a bound on patterns."""


class ListingFailed(BrokerCoreError):
    """A listing has no answer. A failure is never an empty or shortened success:
    docs/explanation/promises.md#exact-or-an-error

    ``cause`` says why, and each transport tells its clients so in its own codes; ``reason`` is a short label for
    metrics (never text of a client), ``plugin`` the plugin that failed, where one did. ``code`` is what a Pulsar client
    gets: that of the cause, unless one is given, as for an error of another broker that is passed on; the cause of a
    given code is the one that it tells. ``counts`` says that it is a sign of trouble for other listings too: failures
    in a row that count make the broker leave a plugin alone for a while. What is due to the question itself, or to the
    load, does not: ``TooManyRequests`` never.
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
    """A number of the protocol is taken for its member."""
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
    """A limit of memory, of places in a queue or of time was reached; asking again later is right."""

    def __init__(self, message: str, *, reason: str, cause: Cause = Cause.PERMITS) -> None:
        super().__init__(message, cause=cause, code=ServerError.TooManyRequests, reason=reason)


class QuotaExceeded(TooManyRequests):
    """A quota of the client is used up; ``retry_after`` is in how many seconds there may be room for one more."""

    def __init__(self, quota: str, retry_after: float) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        super().__init__(
            f"The quota {quota!r} of this client is used up: ask again in {self.retry_after} s",
            reason="quota",
            cause=Cause.QUOTA,
        )


class ResponseTooLarge(ListingFailed):
    """The answer is larger than a frame that the peer accepts; sent, it would close the peer's connection."""

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
