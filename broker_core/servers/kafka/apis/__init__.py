"""The handlers of Kafka's APIs, one module for each group of them; every module has a row ``HANDLERS`` here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.servers.kafka.apis.acls import ACL_ROWS
from broker_core.servers.kafka.apis.alter_configs import ALTER_CONFIGS_ROW, INCREMENTAL_ALTER_CONFIGS_ROW
from broker_core.servers.kafka.apis.api_versions import api_versions_row
from broker_core.servers.kafka.apis.cluster import DESCRIBE_CLUSTER_ROW
from broker_core.servers.kafka.apis.create_partitions import CREATE_PARTITIONS_ROW
from broker_core.servers.kafka.apis.create_topics import CREATE_TOPICS_ROW
from broker_core.servers.kafka.apis.delete_topics import DELETE_TOPICS_ROW
from broker_core.servers.kafka.apis.describe_configs import DESCRIBE_CONFIGS_ROW
from broker_core.servers.kafka.apis.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS_ROW
from broker_core.servers.kafka.apis.groups import GROUP_ROWS
from broker_core.servers.kafka.apis.list_config_resources import LIST_CONFIG_RESOURCES_ROW
from broker_core.servers.kafka.apis.list_offsets import LIST_OFFSETS_ROW
from broker_core.servers.kafka.apis.list_topics import LIST_TOPICS_ROW
from broker_core.servers.kafka.apis.log_dirs import LOG_DIRS_ROW
from broker_core.servers.kafka.apis.metadata import METADATA_ROW
from broker_core.servers.kafka.apis.offset_fetch import OFFSET_FETCH_ROW
from broker_core.servers.kafka.apis.reassignments import REASSIGNMENTS_ROW
from broker_core.servers.kafka.apis.refused_produce_and_fetch import FAIL_FAST_ROWS
from broker_core.servers.kafka.apis.sasl import SASL_ROWS
from broker_core.servers.kafka.apis.transactions import TRANSACTION_ROWS
from broker_core.servers.kafka.requests.call import HandlerRow
from broker_core.servers.kafka.requests.paged_requests import with_pages

__all__ = ["HANDLERS"]

_ROWS: Final = (
    api_versions_row(lambda: HANDLERS.values()),  # noqa: PLW0108 - it is made below
    DESCRIBE_CLUSTER_ROW,
    DESCRIBE_TOPIC_PARTITIONS_ROW,
    LIST_CONFIG_RESOURCES_ROW,
    *GROUP_ROWS,
    *ACL_ROWS,
    ALTER_CONFIGS_ROW,
    CREATE_PARTITIONS_ROW,
    CREATE_TOPICS_ROW,
    DELETE_TOPICS_ROW,
    DESCRIBE_CONFIGS_ROW,
    INCREMENTAL_ALTER_CONFIGS_ROW,
    LIST_OFFSETS_ROW,
    LIST_TOPICS_ROW,
    LOG_DIRS_ROW,
    METADATA_ROW,
    OFFSET_FETCH_ROW,
    REASSIGNMENTS_ROW,
    *TRANSACTION_ROWS,
    *SASL_ROWS,
    *FAIL_FAST_ROWS,
)

#: The handlers by the key of their API.
HANDLERS: Final[Mapping[int, HandlerRow]] = MappingProxyType({row.api.key: with_pages(row) for row in _ROWS})
