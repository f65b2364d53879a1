"""Kafka's error codes that this project sends or understands, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

__all__ = ["MESSAGES", "ErrorCode", "error_name"]


class ErrorCode(IntEnum):
    """A code of a row or of a whole answer: INT16 on the wire. docs/reference/kafka.md lists when each is sent."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    INVALID_GROUP_ID = 24
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    KAFKA_STORAGE_ERROR = 56
    SASL_AUTHENTICATION_FAILED = 58
    GROUP_ID_NOT_FOUND = 69
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    THROTTLING_QUOTA_EXCEEDED = 89
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129


#: Kafka's text for a code, as servers send it without a more specific one.
MESSAGES: Final[Mapping[ErrorCode, str]] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR: (
            "The server experienced an unexpected error when processing the request."
        ),
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
        ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
        ErrorCode.NOT_CONTROLLER: "This is not the correct controller for this cluster.",
        ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
        ErrorCode.INVALID_REQUEST: (
            "This most likely occurs because of a request being malformed by the client library or the message was "
            "sent to an incompatible broker. See the broker logs for more details."
        ),
    }
)


def error_name(code: int) -> str:
    """Kafka's name of a code; the number for one that is only relayed."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
