"""The admin client for Kafka: topics, configs, ACLs and nodes of a Kafka cluster, or of this server."""

from __future__ import annotations

from broker_core.client.kafka.admin_client import AdminClient
from broker_core.client.kafka.blocking_admin_client import BlockingAdminClient
from broker_core.client.kafka.calls.describe_cluster import ClusterDescription
from broker_core.client.kafka.cluster import Cluster as Cluster
from broker_core.client.kafka.cluster import Node
from broker_core.client.kafka.cluster_connections import ClusterConnections as ClusterConnections
from broker_core.client.kafka.configs import (
    AlterConfigOp,
    Config,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from broker_core.client.kafka.created_topics import CreateTopicsResult
from broker_core.client.kafka.errors import (
    ClusterAuthorizationException,
    GroupAuthorizationException,
    IllegalSaslStateException,
    InvalidConfigurationException,
    InvalidPartitionsException,
    InvalidReplicaAssignmentException,
    InvalidReplicationFactorException,
    InvalidRequestException,
    InvalidTopicException,
    KafkaException,
    LeaderNotAvailableException,
    MismatchedEndpointTypeException,
    NotControllerException,
    PolicyViolationException,
    RebootstrapRequiredException,
    SaslAuthenticationException,
    SecurityDisabledException,
    ThrottlingQuotaExceededException,
    TimeoutException,
    TopicAuthorizationException,
    TopicDeletionDisabledException,
    TopicExistsException,
    UnknownServerException,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    UnsupportedSaslMechanismException,
    UnsupportedVersionException,
)
from broker_core.client.kafka.errors import raise_for as raise_for
from broker_core.client.kafka.groups import (
    GroupDescription,
    GroupListing,
    GroupMember,
    OffsetAndMetadata,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from broker_core.client.kafka.logs import PartitionOffset, PartitionReassignment, ProducerState, ReplicaLog
from broker_core.client.kafka.node_connection import LARGE_ANSWER as LARGE_ANSWER
from broker_core.client.kafka.node_connection import ConnectionOptions as ConnectionOptions
from broker_core.client.kafka.node_connection import Hold as Hold
from broker_core.client.kafka.node_connection import NodeConnection as NodeConnection
from broker_core.client.kafka.node_connection import ReadAnswer as ReadAnswer
from broker_core.client.kafka.pages import Page
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.sasl import OAuthBearer, Plain, Scram
from broker_core.client.kafka.sasl import Sasl as Sasl
from broker_core.client.kafka.topic_collection import TopicCollection, TopicIdCollection, TopicNameCollection
from broker_core.client.kafka.topic_listings import ListTopicsResult, TopicListing
from broker_core.client.kafka.topics import NewPartitions, NewTopic, TopicDescription, TopicPartitionInfo
from broker_core.kafka.acls.acl_filters import AclFilter
from broker_core.kafka.acls.bindings import AclBinding, Operation, PatternType, Permission, ResourceType

__all__ = [
    "AclBinding",
    "AclFilter",
    "AdminClient",
    "AlterConfigOp",
    "BlockingAdminClient",
    "ClusterAuthorizationException",
    "ClusterDescription",
    "Config",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "CreateTopicsResult",
    "GroupAuthorizationException",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "IllegalSaslStateException",
    "InvalidConfigurationException",
    "InvalidPartitionsException",
    "InvalidReplicaAssignmentException",
    "InvalidReplicationFactorException",
    "InvalidRequestException",
    "InvalidTopicException",
    "KafkaException",
    "LeaderNotAvailableException",
    "ListTopicsResult",
    "MismatchedEndpointTypeException",
    "NewPartitions",
    "NewTopic",
    "Node",
    "NotControllerException",
    "OAuthBearer",
    "OffsetAndMetadata",
    "Operation",
    "Page",
    "PartitionOffset",
    "PartitionReassignment",
    "PatternType",
    "Permission",
    "Plain",
    "PolicyViolationException",
    "ProducerState",
    "RebootstrapRequiredException",
    "ReplicaLog",
    "ResourceType",
    "Results",
    "SaslAuthenticationException",
    "Scram",
    "SecurityDisabledException",
    "ThrottlingQuotaExceededException",
    "TimeoutException",
    "TopicAuthorizationException",
    "TopicCollection",
    "TopicDeletionDisabledException",
    "TopicDescription",
    "TopicExistsException",
    "TopicIdCollection",
    "TopicListing",
    "TopicNameCollection",
    "TopicPartition",
    "TopicPartitionInfo",
    "TransactionDescription",
    "TransactionListing",
    "UnknownServerException",
    "UnknownTopicIdException",
    "UnknownTopicOrPartitionException",
    "UnsupportedSaslMechanismException",
    "UnsupportedVersionException",
]
