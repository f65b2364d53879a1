"""Pulsar's error codes, and the table from causes to these codes.

It stands below the errors, not in the Pulsar transport, because an error of a plugin may bring a code of its own
(an upstream's, say), whose cause other transports need to know.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.errors.causes import Cause

__all__ = ["CODES", "ServerError", "cause_of", "lookup_code"]


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


#: What a Pulsar client is told for each cause.
CODES: Final[Mapping[Cause, ServerError]] = MappingProxyType(
    {
        Cause.PATTERN: ServerError.MetadataError,  # as a broker's own regular expressions
        Cause.NAME: ServerError.InvalidTopicName,
        Cause.BAD_REQUEST: ServerError.NotAllowedError,
        Cause.NOT_ALLOWED: ServerError.NotAllowedError,
        Cause.NOT_FOUND: ServerError.TopicNotFound,
        Cause.CONFLICT: ServerError.NotAllowedError,
        Cause.PRECONDITION: ServerError.NotAllowedError,
        Cause.TOO_LARGE: ServerError.NotAllowedError,
        Cause.UNAUTHENTICATED: ServerError.AuthenticationError,
        Cause.DENIED: ServerError.AuthorizationError,
        Cause.PERMITS: ServerError.TooManyRequests,
        Cause.QUEUE: ServerError.TooManyRequests,
        Cause.TIME: ServerError.TooManyRequests,
        Cause.PLUGIN: ServerError.MetadataError,
        Cause.CATALOG: ServerError.MetadataError,
        Cause.UPSTREAM: ServerError.MetadataError,
        Cause.UNAVAILABLE: ServerError.ServiceNotReady,
        Cause.INTERNAL: ServerError.MetadataError,
    }
)

_CAUSES: Final[Mapping[ServerError, Cause]] = MappingProxyType(
    {
        ServerError.AuthenticationError: Cause.UNAUTHENTICATED,
        ServerError.AuthorizationError: Cause.DENIED,
        ServerError.ServiceNotReady: Cause.UNAVAILABLE,
        ServerError.TopicNotFound: Cause.NOT_FOUND,
        ServerError.TooManyRequests: Cause.PERMITS,
        ServerError.InvalidTopicName: Cause.NAME,
        ServerError.NotAllowedError: Cause.NOT_ALLOWED,
    }
)


def cause_of(code: ServerError, otherwise: Cause) -> Cause:
    """The cause behind a code that came without one; ``otherwise`` where the code does not tell."""
    return _CAUSES.get(code, otherwise)


def lookup_code(code: ServerError) -> ServerError:
    """The code for an answer to a lookup command (LOOKUP, PARTITIONED_METADATA, GET_SCHEMA).

    For ``TooManyRequests`` and ``ServiceNotReady`` in these, clients close the connection, so they get
    ``MetadataError``.
    """
    if code in {ServerError.TooManyRequests, ServerError.ServiceNotReady}:
        return ServerError.MetadataError
    return code
