"""Every error that broker-core raises, and the codes that its servers answer with.

    BrokerCoreError
    |-- InvalidName              a name of a tenant, namespace or topic that does not parse
    |-- InvalidListing           topics that cannot be a listing of their namespace and mode
    |-- InvalidPattern           a topics pattern that is no regular expression in any dialect
    |-- ListingFailed            no answer: what a client is told, and with which code
        |-- TooManyRequests      a limit of memory, places or time
        |-- ResponseTooLarge     the answer does not fit into a frame that the peer accepts

Parts with errors of their own (wire, permits, plugins, catalog, client) derive them from these, next to their code.
"""

from __future__ import annotations

import enum

__all__ = [
    "BrokerCoreError",
    "InvalidListing",
    "InvalidName",
    "InvalidPattern",
    "ListingFailed",
    "ResponseTooLarge",
    "ServerError",
    "TooManyRequests",
]


class ServerError(enum.IntEnum):
    """The closed enum of Pulsar's ``CommandError.error``; a number outside of it is unparsable for clients."""

    UnknownError = 0
    MetadataError = 1
    PersistenceError = 2
    AuthenticationError = 3
    AuthorizationError = 4
    ConsumerBusy = 5
    ServiceNotReady = 6
    ProducerBlockedQuotaExceededError = 7
    ProducerBlockedQuotaExceededException = 8
    ChecksumError = 9
    UnsupportedVersionError = 10
    TopicNotFound = 11
    SubscriptionNotFound = 12
    ConsumerNotFound = 13
    TooManyRequests = 14
    TopicTerminatedError = 15
    ProducerBusy = 16
    InvalidTopicName = 17
    IncompatibleSchema = 18
    ConsumerAssignError = 19
    TransactionCoordinatorNotFound = 20
    InvalidTxnStatus = 21
    NotAllowedError = 22
    TransactionConflict = 23
    TransactionNotFound = 24
    ProducerFenced = 25


class BrokerCoreError(Exception):
    """The root of all errors that this package raises on purpose."""


class InvalidName(BrokerCoreError, ValueError):
    """A name does not parse; the message says which and why."""


class InvalidListing(BrokerCoreError, ValueError):
    """Topics do not make a listing: a bad name, or a name of another namespace or mode."""


class InvalidPattern(BrokerCoreError, ValueError):
    """A topics pattern is no regular expression in any dialect, or breaks a bound on patterns."""


class ListingFailed(BrokerCoreError):
    """A listing has no answer. A failure is never an empty or shortened success (promise 1 of the design).

    ``code`` is what a client gets, ``reason`` a short label for metrics (never text of a client), ``plugin`` the
    plugin that failed, where one did. ``counts`` says that it is a sign of trouble for other listings too: failures in
    a row that count make the broker leave a plugin alone for a while. What is due to the question itself, or to the
    load, does not: ``TooManyRequests`` never.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ServerError = ServerError.MetadataError,
        reason: str = "failed",
        plugin: str | None = None,
        counts: bool = True,
    ) -> None:
        _check(message, str, "message must be a string", "str(error)")
        _check(reason, str, "reason must be a string, a short label for metrics", "'failed'")
        if plugin is not None:
            _check(plugin, str, "plugin must be a string, the name of a plugin, or None", "None")
        _check(counts, bool, "counts must be a bool", "True")
        super().__init__(message)
        self.message = message
        self.code = _code(code)
        self.reason = reason
        self.plugin = plugin
        self.counts = counts and self.code is not ServerError.TooManyRequests


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

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message, code=ServerError.TooManyRequests, reason=reason)


class ResponseTooLarge(ListingFailed):
    """The answer is larger than a frame that the peer accepts; sent, it would close the peer's connection."""

    def __init__(self, size: int, limit: int, topics: int) -> None:
        super().__init__(
            f"The listing of {topics} topics is a frame of {size} bytes, over this client's limit of {limit} bytes: "
            "ask with a narrower topics pattern, or raise max_message_size here and at the brokers",
            code=ServerError.NotAllowedError,
            reason="frame_limit",
        )
        self.size = size
        self.limit = limit
