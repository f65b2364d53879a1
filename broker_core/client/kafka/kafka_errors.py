"""The errors of Kafka's protocol as exceptions, each named as in Kafka's Java client.

Failures of a connection have no code: they are errors of :mod:`broker_core.client`, such as
:exc:`~broker_core.client.ConnectionLost`.
"""

from __future__ import annotations

from typing import ClassVar, Final, Self

from broker_core.client.client_errors import ClientError, OperationTimeout, is_passing
from broker_core.wire.kafka import MESSAGES, ErrorCode, error_name

__all__ = [
    "BrokerNotAvailableException",
    "ClusterAuthorizationException",
    "CoordinatorLoadInProgressException",
    "CoordinatorNotAvailableException",
    "GroupAuthorizationException",
    "GroupIdNotFoundException",
    "IllegalSaslStateException",
    "InconsistentClusterIdException",
    "InconsistentTopicIdException",
    "InvalidConfigurationException",
    "InvalidGroupIdException",
    "InvalidPartitionsException",
    "InvalidRegularExpression",
    "InvalidReplicaAssignmentException",
    "InvalidReplicationFactorException",
    "InvalidRequestException",
    "InvalidTopicException",
    "KafkaException",
    "KafkaStorageException",
    "LeaderNotAvailableException",
    "ListenerNotFoundException",
    "MismatchedEndpointTypeException",
    "NotControllerException",
    "NotCoordinatorException",
    "NotLeaderOrFollowerException",
    "OffsetNotAvailableException",
    "PolicyViolationException",
    "RebootstrapRequiredException",
    "SaslAuthenticationException",
    "SecurityDisabledException",
    "ThrottlingQuotaExceededException",
    "TimeoutException",
    "TopicAuthorizationException",
    "TopicDeletionDisabledException",
    "TopicExistsException",
    "TransactionalIdAuthorizationException",
    "TransactionalIdNotFoundException",
    "UnknownLeaderEpochException",
    "UnknownServerException",
    "UnknownTopicIdException",
    "UnknownTopicOrPartitionException",
    "UnsupportedEndpointTypeException",
    "UnsupportedForMessageFormatException",
    "UnsupportedSaslMechanismException",
    "UnsupportedVersionException",
    "kafka_error",
    "may_pass",
    "raise_for",
]


class KafkaException(ClientError):
    """An error that a Kafka server answered, or for which its protocol has a code.

    ``code`` is the number of the protocol, ``message`` the server's text, or else the general one of the code.
    """

    #: The code of each class; of an answer, the code that the server sent.
    code: int = ErrorCode.UNKNOWN_SERVER_ERROR
    #: Whether a repeated request may succeed a little later.
    retriable: ClassVar[bool] = False
    #: The text if the server sent none.
    general: ClassVar[str] = MESSAGES[ErrorCode.UNKNOWN_SERVER_ERROR]

    def __init_subclass__(
        cls, *, code: int | None = None, retriable: bool = False, general: str | None = None
    ) -> None:
        """Declare the exception of a ``code``; without one it has those of its base. ``general`` is the text, if it is
        not the one that servers send.
        """
        super().__init_subclass__()
        if code is not None:
            cls.code, cls.retriable = code, retriable
            cls.general = general or MESSAGES.get(ErrorCode(code), cls.general)

    def __init__(self, message: str | None = None, *, code: int | None = None) -> None:
        self.message = message or self.general
        if code is not None:
            self.code = code
        super().__init__(f"{error_name(self.code)}: {self.message}")

    def copy(self) -> Self:
        return type(self)(self.message, code=self.code)


class UnknownServerException(KafkaException):
    """An error without a code of its own (-1), or of a code that this client does not know."""


class UnknownTopicOrPartitionException(
    KafkaException,
    code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    retriable=True,
):
    """No topic or partition has this name."""


class LeaderNotAvailableException(
    KafkaException,
    code=ErrorCode.LEADER_NOT_AVAILABLE,
    retriable=True,
    general="There is no leader for this topic-partition as we are in the middle of a leadership election.",
):
    """A topic or partition has no leader just now."""


class NotLeaderOrFollowerException(
    KafkaException,
    code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
    retriable=True,
    general=(
        "For requests intended only for the leader, this error indicates that the broker is not the current leader. "
        "For requests intended for any replica, this error indicates that the broker is not a replica of the topic "
        "partition."
    ),
):
    """The leader of the partition is another node by now."""


class TimeoutException(
    KafkaException,
    OperationTimeout,
    code=ErrorCode.REQUEST_TIMED_OUT,
    retriable=True,
):
    """No answer in time: from the server, or from its own controller."""


class BrokerNotAvailableException(
    KafkaException,
    code=ErrorCode.BROKER_NOT_AVAILABLE,
    retriable=True,
    general="The broker is not available.",
):
    """The node that has it does not answer."""


class CoordinatorLoadInProgressException(
    KafkaException,
    code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    retriable=True,
    general="The coordinator is loading and hence can't process requests.",
):
    """The coordinator of a group or transaction is not ready yet."""


class CoordinatorNotAvailableException(
    KafkaException,
    code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    retriable=True,
    general="The coordinator is not available.",
):
    """A group or transaction has no coordinator just now."""


class NotCoordinatorException(
    KafkaException,
    code=ErrorCode.NOT_COORDINATOR,
    retriable=True,
    general="This is not the correct coordinator.",
):
    """The coordinator is another node by now."""


class InvalidTopicException(
    KafkaException,
    code=ErrorCode.INVALID_TOPIC_EXCEPTION,
    general="The request attempted to perform an operation on an invalid topic.",
):
    """No topic can have this name."""


class InvalidGroupIdException(
    KafkaException, code=ErrorCode.INVALID_GROUP_ID, general="The configured groupId is invalid."
):
    """No group can have this id."""


class TopicAuthorizationException(KafkaException, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    """The client may not do this with the topic."""


class GroupAuthorizationException(KafkaException, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    """The client may not do this with the group."""


class ClusterAuthorizationException(KafkaException, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """The client may not do this with the cluster."""


class UnsupportedSaslMechanismException(
    KafkaException,
    code=ErrorCode.UNSUPPORTED_SASL_MECHANISM,
    general="The broker does not support the requested SASL mechanism.",
):
    """The server has other mechanisms."""


class IllegalSaslStateException(
    KafkaException,
    code=ErrorCode.ILLEGAL_SASL_STATE,
    general="Request is not valid given the current SASL state.",
):
    """The server expects another step of authentication."""


class UnsupportedVersionException(
    KafkaException, code=ErrorCode.UNSUPPORTED_VERSION, general="The version of API is not supported."
):
    """The server lacks an API, or a version of it that can express the request."""


class TopicExistsException(
    KafkaException, code=ErrorCode.TOPIC_ALREADY_EXISTS, general="Topic with this name already exists."
):
    """A topic has this name already."""


class InvalidPartitionsException(
    KafkaException, code=ErrorCode.INVALID_PARTITIONS, general="Number of partitions is below 1."
):
    """No topic can have this number of partitions."""


class InvalidReplicationFactorException(
    KafkaException,
    code=ErrorCode.INVALID_REPLICATION_FACTOR,
    general="Replication factor is below 1 or larger than the number of available brokers.",
):
    """More replicas than nodes, or less than one."""


class InvalidReplicaAssignmentException(
    KafkaException, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT, general="Replica assignment is invalid."
):
    """The nodes cannot have these partitions."""


class InvalidConfigurationException(
    KafkaException, code=ErrorCode.INVALID_CONFIG, general="Configuration is invalid."
):
    """No config has this name, or a config cannot have this value."""


class NotControllerException(
    KafkaException,
    code=ErrorCode.NOT_CONTROLLER,
    retriable=True,
):
    """The controller is another node, or there is none just now."""


class InvalidRequestException(
    KafkaException,
    code=ErrorCode.INVALID_REQUEST,
    general="The request does not fit what the server has, or is malformed.",
):
    """A request that contradicts itself."""


class UnsupportedForMessageFormatException(
    KafkaException,
    code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    general="The message format version on the broker does not support the request.",
):
    """The messages are of a format that cannot answer this."""


class PolicyViolationException(
    KafkaException,
    code=ErrorCode.POLICY_VIOLATION,
    general="Request parameters do not satisfy the configured policy.",
):
    """The server does not do this, by its own policy."""


class TransactionalIdAuthorizationException(
    KafkaException,
    code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    general="Transactional Id authorization failed.",
):
    """The client may not do this with the transactional id."""


class SecurityDisabledException(
    KafkaException, code=ErrorCode.SECURITY_DISABLED, general="Security features are disabled."
):
    """The server has no ACLs."""


class KafkaStorageException(
    KafkaException,
    code=ErrorCode.KAFKA_STORAGE_ERROR,
    general="Disk error when trying to access log file on the disk.",
):
    """A directory of logs failed: waiting does not help."""


class SaslAuthenticationException(
    KafkaException, code=ErrorCode.SASL_AUTHENTICATION_FAILED, general="SASL Authentication failed."
):
    """The credentials are wrong."""


class GroupIdNotFoundException(
    KafkaException, code=ErrorCode.GROUP_ID_NOT_FOUND, general="The group id does not exist."
):
    """No group has this id."""


class ListenerNotFoundException(
    KafkaException,
    code=ErrorCode.LISTENER_NOT_FOUND,
    retriable=True,
    general=(
        "There is no listener on the leader broker that matches the listener on which metadata request was "
        "processed."
    ),
):
    """The leader has no listener like the one that was asked."""


class TopicDeletionDisabledException(
    KafkaException, code=ErrorCode.TOPIC_DELETION_DISABLED, general="Topic deletion is disabled."
):
    """The server deletes no topics."""


class UnknownLeaderEpochException(
    KafkaException,
    code=ErrorCode.UNKNOWN_LEADER_EPOCH,
    retriable=True,
    general="The leader epoch in the request is newer than the epoch on the broker.",
):
    """The node does not know the leader's epoch yet."""


class OffsetNotAvailableException(
    KafkaException,
    code=ErrorCode.OFFSET_NOT_AVAILABLE,
    retriable=True,
    general=(
        "The leader high watermark has not caught up from a recent leader election so the offsets cannot be "
        "guaranteed to be monotonically increasing."
    ),
):
    """The leader was just elected, and does not know the end of the partition yet."""


class ThrottlingQuotaExceededException(
    KafkaException,
    code=ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    retriable=True,
    general="The throttling quota has been exceeded.",
):
    """The client has changed too much lately."""


class UnknownTopicIdException(
    KafkaException,
    code=ErrorCode.UNKNOWN_TOPIC_ID,
    retriable=True,
):
    """No topic has this id."""


class InconsistentTopicIdException(
    KafkaException,
    code=ErrorCode.INCONSISTENT_TOPIC_ID,
    retriable=True,
    general="The log's topic ID did not match the topic ID in the request.",
):
    """Another topic has the name by now."""


class InconsistentClusterIdException(
    KafkaException,
    code=ErrorCode.INCONSISTENT_CLUSTER_ID,
    general="The clusterId in the request does not match that found on the server.",
):
    """The request names another cluster."""


class TransactionalIdNotFoundException(
    KafkaException,
    code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    general="The transactionalId could not be found.",
):
    """No transaction has this id."""


class MismatchedEndpointTypeException(
    KafkaException,
    code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
    general="The request was sent to an endpoint of the wrong type.",
):
    """The node is a controller, and was asked as a broker."""


class UnsupportedEndpointTypeException(
    KafkaException,
    code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
    general="This endpoint type is not supported yet.",
):
    """The server has no such kind of endpoint."""


class InvalidRegularExpression(
    KafkaException, code=ErrorCode.INVALID_REGULAR_EXPRESSION, general="The regular expression is not valid."
):
    """A pattern that the server cannot read."""


class RebootstrapRequiredException(
    KafkaException,
    code=ErrorCode.REBOOTSTRAP_REQUIRED,
    retriable=True,
    general="Client metadata is stale. The client should rebootstrap to obtain new metadata.",
):
    """The server wants the client to begin with its bootstrap addresses again, which it does."""


_BY_CODE: Final[dict[int, type[KafkaException]]] = {
    kind.code: kind for kind in KafkaException.__subclasses__()
}


def kafka_error(code: int, message: str | None = None) -> KafkaException | None:
    """The exception of an error code of the protocol; ``None`` for 0.

    A code without an exception of its own is an :exc:`UnknownServerException` that has the code.
    """
    if code == ErrorCode.NONE:
        return None
    kind = _BY_CODE.get(code, UnknownServerException)
    return kind(_bounded(message), code=code)


def raise_for(code: int, message: str | None = None) -> None:
    """Raise the exception of an error code, unless it is 0."""
    failed = kafka_error(code, message)
    if failed is not None:
        raise failed


def may_pass(failed: ClientError) -> bool:
    """Whether a repeated request may succeed a little later: the connection broke, or the code says so."""
    return failed.retriable if isinstance(failed, KafkaException) else is_passing(failed)


def _bounded(message: str | None) -> str | None:
    """A server's text, cut to a length that a person reads."""
    return message if message is None or len(message) <= 2_000 else f"{message[:2_000]}..."
