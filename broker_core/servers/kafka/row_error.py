"""Errors of rows of an answer: a code and a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core.catalog import CatalogError, TopicMissing
from broker_core.errors import Cause, ListingFailed
from broker_core.wire.kafka import MESSAGES, ErrorCode, Fields, Struct

__all__ = [
    "FAILURES",
    "MOST_CHANGES",
    "READ_ONLY",
    "TOO_LARGE",
    "ChangeRefused",
    "RowError",
    "code_of",
    "error_of",
    "error_row",
]

#: The codes for failures of the server, or of a part that it needs.
FAILURES: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_CONTROLLER,
    }
)

#: Characters of a message, which may quote what a client sent: a text of versions before the flexible ones has 32,767
#: bytes at most.
_LONGEST: Final = 8_000


@dataclass(frozen=True, slots=True)
class RowError:
    """Error of one row of an answer: its ``code``, never ``NONE``, and of a very long ``message`` the begin."""

    code: ErrorCode
    message: str | None

    def __post_init__(self) -> None:
        if self.message is not None and len(self.message) > _LONGEST:
            object.__setattr__(self, "message", self.message[:_LONGEST] + "...")

    @property
    def fields(self) -> Fields:
        """The fields of the error in a message, or in a row of it."""
        return {"error_code": self.code, "error_message": self.message}

    def fields_of(self, struct: Struct) -> Fields:
        """The fields of the error in a struct, which may have no text."""
        return {
            name: value
            for name, value in self.fields.items()
            if any(name == each.name for each in struct.fields)
        }


#: The answer to every change before a cluster.
READ_ONLY: Final = RowError(
    ErrorCode.POLICY_VIOLATION, "This server lists the topics of a Pulsar cluster, and changes none of them."
)


#: The most topics, resources or ACLs that one request may change, as many as records of Kafka's metadata log.
MOST_CHANGES: Final = 10_000
#: The error of each row of a larger request.
TOO_LARGE: Final = RowError(
    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
)


class ChangeRefused(CatalogError):
    """A change of one topic is refused within the transaction that would make it."""

    def __init__(self, error: RowError) -> None:
        super().__init__(error.message or error.code.name)
        self.error = error


def error_row(code: ErrorCode) -> RowError:
    """The error of this code with Kafka's message."""
    return RowError(code, MESSAGES.get(code))


def code_of(
    failure: CatalogError | ListingFailed, denied: ErrorCode = ErrorCode.TOPIC_AUTHORIZATION_FAILED
) -> ErrorCode:
    """The code of a failure, by its cause; ``denied`` is the code for a missing right."""
    return denied if failure.cause is Cause.DENIED else ErrorCode(failure.cause.kafka)


def error_of(failure: CatalogError | ListingFailed) -> RowError:
    """The error for a client about a failed change, of which nothing was made."""
    if isinstance(failure, ChangeRefused):
        return failure.error
    if isinstance(failure, TopicMissing):
        return error_row(code_of(failure))
    return RowError(code_of(failure), failure.message if isinstance(failure, ListingFailed) else str(failure))
