"""Pulsar's error codes."""

from __future__ import annotations

import enum

__all__ = ["ServerError", "lookup_code"]


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


def lookup_code(code: ServerError) -> ServerError:
    """The code for an answer to a lookup command (LOOKUP, PARTITIONED_METADATA, GET_SCHEMA).

    Clients close the connection for ``TooManyRequests`` and ``ServiceNotReady`` in these, so they get
    ``MetadataError``.
    """
    if code in {ServerError.TooManyRequests, ServerError.ServiceNotReady}:
        return ServerError.MetadataError
    return code
