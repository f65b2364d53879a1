"""Causes of failures, independent of any protocol.

An error names its cause. Each transport has one table from causes to its own error codes: Pulsar's is
:mod:`broker_core.errors.pulsar_codes`.
"""

from __future__ import annotations

import enum

__all__ = ["Cause"]


class Cause(enum.Enum):
    """Why a question has no answer. The first ones are due to the question, the others to what it met."""

    PATTERN = "pattern"  # no regular expression, too long, or not supported
    NAME = "name"  # of a namespace or a topic: it does not parse
    BAD_REQUEST = "bad_request"  # a field that has no such value, or too many of them
    NOT_ALLOWED = "not_allowed"  # no client may ask this here
    NOT_FOUND = "not_found"  # what it is about does not exist
    CONFLICT = "conflict"  # what is there does not allow this change
    PRECONDITION = "precondition"  # what is there is not what the client expects
    TOO_LARGE = "too_large"  # the answer is larger than the client takes
    UNAUTHENTICATED = "unauthenticated"  # the client is not authenticated
    DENIED = "denied"  # the client is not authorized
    PERMITS = "permits"  # no memory is free
    QUEUE = "queue"  # too many wait already
    TIME = "time"  # it took too long
    PLUGIN = "plugin"  # a plugin failed, or answered wrongly
    CATALOG = "catalog"  # the catalogue cannot be read
    UPSTREAM = "upstream"  # the brokers behind this server failed
    UNAVAILABLE = "unavailable"  # what is needed is not ready yet, or away for a while
    INTERNAL = "internal"  # a mistake of this server's
