"""The APIs by key: one module for each API, or for a few that belong together; each has a row here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables.acls import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS
from broker_core.wire.kafka.api_tables.alter_configs import ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS
from broker_core.wire.kafka.api_tables.api_versions import API_VERSIONS
from broker_core.wire.kafka.api_tables.coordinators import FIND_COORDINATOR, INIT_PRODUCER_ID
from broker_core.wire.kafka.api_tables.create_partitions import CREATE_PARTITIONS
from broker_core.wire.kafka.api_tables.create_topics import CREATE_TOPICS
from broker_core.wire.kafka.api_tables.delete_topics import DELETE_TOPICS
from broker_core.wire.kafka.api_tables.describe_cluster import DESCRIBE_CLUSTER
from broker_core.wire.kafka.api_tables.describe_configs import DESCRIBE_CONFIGS
from broker_core.wire.kafka.api_tables.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS
from broker_core.wire.kafka.api_tables.fetch import FETCH
from broker_core.wire.kafka.api_tables.groups import DESCRIBE_GROUPS, LIST_GROUPS
from broker_core.wire.kafka.api_tables.list_config_resources import LIST_CONFIG_RESOURCES
from broker_core.wire.kafka.api_tables.list_offsets import LIST_OFFSETS
from broker_core.wire.kafka.api_tables.list_topics import LIST_TOPICS
from broker_core.wire.kafka.api_tables.metadata import METADATA
from broker_core.wire.kafka.api_tables.produce import PRODUCE
from broker_core.wire.kafka.api_tables.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE

__all__ = ["APIS"]

APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            ALTER_CONFIGS,
            API_VERSIONS,
            CREATE_ACLS,
            CREATE_PARTITIONS,
            CREATE_TOPICS,
            DELETE_ACLS,
            DELETE_TOPICS,
            DESCRIBE_ACLS,
            DESCRIBE_CLUSTER,
            DESCRIBE_CONFIGS,
            DESCRIBE_GROUPS,
            DESCRIBE_TOPIC_PARTITIONS,
            FETCH,
            FIND_COORDINATOR,
            INCREMENTAL_ALTER_CONFIGS,
            INIT_PRODUCER_ID,
            LIST_CONFIG_RESOURCES,
            LIST_GROUPS,
            LIST_OFFSETS,
            LIST_TOPICS,
            METADATA,
            PRODUCE,
            SASL_AUTHENTICATE,
            SASL_HANDSHAKE,
        )
    }
)
