"""Causes of failures, independent of any protocol, Pulsar's codes, and the one table from causes to the codes of each
transport.

It is beside the errors, not in the transports, because an error of a plugin may bring a code of its own (an upstream's,
say), whose cause other transports need to know, and because a row decides what clients of every transport get for one
cause.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Self

__all__ = ["Cause", "ServerError", "cause_of", "lookup_code"]


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


class Cause(enum.Enum):
    """Why a request has no answer. The first causes are due to the request, the others to its circumstances.

    ``pulsar`` is the code for a Pulsar client, ``http`` the status for an HTTP client, ``kafka`` the number of Kafka's
    error code. ``web_service`` is the status of a broker's web service if it differs from ``http``.
    """

    pulsar: ServerError
    http: int
    kafka: int
    web_service: int

    def __new__(
        cls, value: str, pulsar: ServerError, http: int, kafka: int, web_service: int | None = None
    ) -> Self:
        cause = object.__new__(cls)
        cause._value_ = value
        cause.pulsar, cause.http, cause.kafka = pulsar, http, kafka
        cause.web_service = http if web_service is None else web_service
        return cause

    # not a regular expression, too long, or not supported; a broker uses this code for regular expressions
    PATTERN = "pattern", ServerError.MetadataError, 400, -1
    # of a namespace or a topic: it does not parse
    NAME = "name", ServerError.InvalidTopicName, 400, -1, 412
    # an invalid value of a field, or too many of them; for Kafka's clients these are configs
    BAD_REQUEST = "bad_request", ServerError.NotAllowedError, 400, 40
    # a request that no client may make here
    NOT_ALLOWED = "not_allowed", ServerError.NotAllowedError, 403, 44
    # the object of the request does not exist
    NOT_FOUND = "not_found", ServerError.TopicNotFound, 404, 3
    # the current state does not allow this change
    CONFLICT = "conflict", ServerError.NotAllowedError, 409, -1
    # the current state is not what the client expects
    PRECONDITION = "precondition", ServerError.NotAllowedError, 412, -1
    # the answer is larger than the client accepts
    TOO_LARGE = "too_large", ServerError.NotAllowedError, 413, -1
    # the client is not authenticated
    UNAUTHENTICATED = "unauthenticated", ServerError.AuthenticationError, 401, -1
    # the client is not authorized
    DENIED = "denied", ServerError.AuthorizationError, 403, 29
    # no memory is free
    PERMITS = "permits", ServerError.TooManyRequests, 503, 7
    # a quota of the client is used up
    QUOTA = "quota", ServerError.TooManyRequests, 429, 89
    # too many wait already
    QUEUE = "queue", ServerError.TooManyRequests, 503, 7
    # it took too long
    TIME = "time", ServerError.TooManyRequests, 504, 7
    # a plugin failed, or answered wrongly
    PLUGIN = "plugin", ServerError.MetadataError, 502, -1
    # the catalogue cannot be read, or written
    CATALOG = "catalog", ServerError.MetadataError, 500, -1
    # the disk has no room for a change
    FULL = "full", ServerError.MetadataError, 507, -1
    # the brokers behind this server failed
    UPSTREAM = "upstream", ServerError.MetadataError, 502, 7
    # something needed is not ready yet, or away for a while
    UNAVAILABLE = "unavailable", ServerError.ServiceNotReady, 503, 7
    # a bug of this server
    INTERNAL = "internal", ServerError.MetadataError, 500, -1


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
    """The cause of a code that came without one; ``otherwise`` if the code does not determine it."""
    return _CAUSES.get(code, otherwise)


def lookup_code(code: ServerError) -> ServerError:
    """The code for an answer to a lookup command (LOOKUP, PARTITIONED_METADATA, GET_SCHEMA).

    Clients close the connection for ``TooManyRequests`` and ``ServiceNotReady`` in these, so they get
    ``MetadataError``.
    """
    if code in {ServerError.TooManyRequests, ServerError.ServiceNotReady}:
        return ServerError.MetadataError
    return code
