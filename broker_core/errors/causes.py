"""Causes of failures, independent of any protocol, and the one table from causes to the codes of each transport.

It stands below the errors, not in the transports, because an error of a plugin may bring a code of its own (an
upstream's, say), whose cause other transports need to know, and because a row is a decision: what clients of every
transport are told of one cause.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Self

from broker_core.errors.server_error import ServerError

__all__ = ["Cause", "cause_of"]


class Cause(enum.Enum):
    """Why a question has no answer. The first ones are due to the question, the others to what it met.

    ``pulsar`` is the code that a Pulsar client gets, ``http`` the status of an HTTP client, ``kafka`` the number of
    Kafka's error code. ``web_service`` is the status where a broker's web service has another one than ``http``.
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

    # no regular expression, too long, or not supported; the code is that of a broker's own regular expressions
    PATTERN = "pattern", ServerError.MetadataError, 400, -1
    # of a namespace or a topic: it does not parse
    NAME = "name", ServerError.InvalidTopicName, 400, -1, 412
    # a field that has no such value, or too many of them; those that are read so late for Kafka's clients are configs
    BAD_REQUEST = "bad_request", ServerError.NotAllowedError, 400, 40
    # no client may ask this here
    NOT_ALLOWED = "not_allowed", ServerError.NotAllowedError, 403, 44
    # what it is about does not exist
    NOT_FOUND = "not_found", ServerError.TopicNotFound, 404, 3
    # what is there does not allow this change
    CONFLICT = "conflict", ServerError.NotAllowedError, 409, -1
    # what is there is not what the client expects
    PRECONDITION = "precondition", ServerError.NotAllowedError, 412, -1
    # the answer is larger than the client takes
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
    UPSTREAM = "upstream", ServerError.MetadataError, 502, -1
    # what is needed is not ready yet, or away for a while
    UNAVAILABLE = "unavailable", ServerError.ServiceNotReady, 503, 7
    # a mistake of this server's
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
    """The cause behind a code that came without one; ``otherwise`` where the code does not tell."""
    return _CAUSES.get(code, otherwise)
