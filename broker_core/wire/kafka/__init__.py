"""Kafka's protocol without sockets: values, messages by API and version, headers, frames.

Written after Kafka's message definitions (4.3) and KIP-482; docs/reference/kafka.md lists the APIs.
"""

from __future__ import annotations

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables import APIS
from broker_core.wire.kafka.api_tables.acls import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from broker_core.wire.kafka.api_tables.alter_configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from broker_core.wire.kafka.api_tables.api_versions import API_VERSIONS
from broker_core.wire.kafka.api_tables.coordinators import FIND_COORDINATOR, INIT_PRODUCER_ID
from broker_core.wire.kafka.api_tables.create_partitions import CREATE_PARTITIONS
from broker_core.wire.kafka.api_tables.create_topics import CREATE_TOPICS, CREATED_CONFIG
from broker_core.wire.kafka.api_tables.delete_topics import DELETE_TOPICS
from broker_core.wire.kafka.api_tables.describe_cluster import DESCRIBE_CLUSTER
from broker_core.wire.kafka.api_tables.describe_configs import (
    DESCRIBE_CONFIGS,
    DESCRIBED_CONFIG,
    DESCRIBED_RESOURCE,
)
from broker_core.wire.kafka.api_tables.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from broker_core.wire.kafka.api_tables.fetch import FETCH
from broker_core.wire.kafka.api_tables.groups import DESCRIBE_GROUPS, LIST_GROUPS
from broker_core.wire.kafka.api_tables.list_config_resources import LIST_CONFIG_RESOURCES
from broker_core.wire.kafka.api_tables.list_offsets import LIST_OFFSETS
from broker_core.wire.kafka.api_tables.list_topics import LIST_TOPICS
from broker_core.wire.kafka.api_tables.metadata import METADATA, NOT_ASKED
from broker_core.wire.kafka.api_tables.produce import PRODUCE
from broker_core.wire.kafka.api_tables.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from broker_core.wire.kafka.error_codes import ErrorCode
from broker_core.wire.kafka.faults import fault_of
from broker_core.wire.kafka.fields import ZERO_ID, Fields
from broker_core.wire.kafka.frame_splitter import FrameSplitter
from broker_core.wire.kafka.headers import (
    RequestHeader,
    read_header,
    read_response,
    request_frame,
    response_frame,
)
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Buffer, Encoded, Writer

__all__ = [
    "ALTER_CONFIGS",
    "APIS",
    "API_VERSIONS",
    "CREATED_CONFIG",
    "CREATE_ACLS",
    "CREATE_PARTITIONS",
    "CREATE_TOPICS",
    "DELETE_ACLS",
    "DELETE_TOPICS",
    "DESCRIBED_CONFIG",
    "DESCRIBED_RESOURCE",
    "DESCRIBE_ACLS",
    "DESCRIBE_CLUSTER",
    "DESCRIBE_CONFIGS",
    "DESCRIBE_GROUPS",
    "DESCRIBE_TOPIC_PARTITIONS",
    "FETCH",
    "FIND_COORDINATOR",
    "INCREMENTAL_ALTER_CONFIGS",
    "INIT_PRODUCER_ID",
    "LIST_CONFIG_RESOURCES",
    "LIST_GROUPS",
    "LIST_OFFSETS",
    "LIST_TOPICS",
    "METADATA",
    "NOT_ASKED",
    "PRODUCE",
    "SASL_AUTHENTICATE",
    "SASL_HANDSHAKE",
    "ZERO_ID",
    "Api",
    "Buffer",
    "Encoded",
    "ErrorCode",
    "Fields",
    "FrameSplitter",
    "MalformedMessage",
    "Reader",
    "RequestHeader",
    "Writer",
    "fault_of",
    "read_header",
    "read_response",
    "request_frame",
    "response_frame",
]
