"""Names of namespaces and topics, one at a time and strictly.

The rules are Pulsar's own (``NamespaceName``, ``TopicName``, ``NamedEntity``, ``SystemTopicNames`` of the
broker, 5.0): a namespace is ``tenant/namespace`` of ``[-=:.\\w]`` (ASCII), a topic is
``domain://tenant/namespace/local``, and a partition is a topic whose local name ends in ``-partition-N`` with a
canonical ``N``. For whole columns of names see :mod:`broker_core.names.name_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports
from broker_core.names.namespace_name import NamespaceName
from broker_core.names.topic_name import DOMAINS, MAX_NAME_BYTES, NON_PERSISTENT, PERSISTENT, Mode, TopicName

if TYPE_CHECKING:  # of the core alone
    from broker_core.names.hash_order import hash_order_bytes as hash_order_bytes
    from broker_core.names.hash_order import hash_order_key as hash_order_key
    from broker_core.names.hash_order import hash_order_keys as hash_order_keys
    from broker_core.names.hash_order import is_ascending as is_ascending
    from broker_core.names.hash_order import name_of_hash_order as name_of_hash_order
    from broker_core.names.hash_order import names_of_key as names_of_key
    from broker_core.names.hash_order import sorted_rows as sorted_rows
    from broker_core.names.listed_names import NOTHING as NOTHING
    from broker_core.names.listed_names import ListedNames as ListedNames
    from broker_core.names.listed_names import count_listed as count_listed
    from broker_core.names.listed_names import merge_listed as merge_listed
    from broker_core.names.name_columns import Array as Array
    from broker_core.names.name_columns import as_column as as_column
    from broker_core.names.name_columns import check_local_names as check_local_names
    from broker_core.names.name_columns import column_data as column_data
    from broker_core.names.name_columns import contains as contains
    from broker_core.names.name_columns import listed_topic as listed_topic
    from broker_core.names.name_columns import matched_forms as matched_forms
    from broker_core.names.name_columns import partitioned_local_names as partitioned_local_names
    from broker_core.names.name_columns import split_full_names as split_full_names
    from broker_core.names.name_columns import split_partitions as split_partitions
    from broker_core.names.name_columns import system_topic_mask as system_topic_mask
    from broker_core.names.name_columns import with_ends as with_ends
    from broker_core.names.name_columns import without_ends as without_ends
    from broker_core.names.namespace_name import MAX_NAMESPACE as MAX_NAMESPACE
    from broker_core.names.partitions import MAX_PARTITION_INDEX as MAX_PARTITION_INDEX
    from broker_core.names.partitions import MAX_PARTITIONS as MAX_PARTITIONS
    from broker_core.names.partitions import PARTITION_SUFFIX as PARTITION_SUFFIX
    from broker_core.names.partitions import partition_index as partition_index
    from broker_core.names.partitions import partition_name as partition_name
    from broker_core.names.partitions import partitioned_local_name as partitioned_local_name
    from broker_core.names.rule_patterns import NamespacePatterns as NamespacePatterns
    from broker_core.names.rule_patterns import Prefixes as Prefixes
    from broker_core.names.rule_patterns import RulePattern as RulePattern
    from broker_core.names.rule_patterns import covers_topics as covers_topics
    from broker_core.names.rule_patterns import topic_expression as topic_expression
    from broker_core.names.system_topics import SystemTopics as SystemTopics
    from broker_core.names.system_topics import system_topics_rule as system_topics_rule
    from broker_core.names.topic_id import RESERVED_IDS as RESERVED_IDS
    from broker_core.names.topic_id import new_topic_id as new_topic_id
    from broker_core.names.topic_id import new_topic_ids as new_topic_ids
    from broker_core.names.topic_id import parse_topic_id as parse_topic_id
    from broker_core.names.topic_id import topic_id_text as topic_id_text
    from broker_core.names.topic_id import topic_ids_of_a_request as topic_ids_of_a_request
    from broker_core.names.topic_name import check_local_name as check_local_name
    from broker_core.names.topic_name import topic_in_namespace as topic_in_namespace

#: The public names.
__all__ = [
    "DOMAINS",
    "MAX_NAME_BYTES",
    "NON_PERSISTENT",
    "PERSISTENT",
    "Mode",
    "NamespaceName",
    "TopicName",
]

# Columns of names take Arrow, which a command that needs one name does not wait for.
__getattr__ = lazy_exports(
    __name__,
    {
        "Array": ".name_columns",
        "ListedNames": ".listed_names",
        "MAX_NAMESPACE": ".namespace_name",
        "MAX_PARTITIONS": ".partitions",
        "MAX_PARTITION_INDEX": ".partitions",
        "NOTHING": ".listed_names",
        "NamespacePatterns": ".rule_patterns",
        "PARTITION_SUFFIX": ".partitions",
        "Prefixes": ".rule_patterns",
        "RESERVED_IDS": ".topic_id",
        "RulePattern": ".rule_patterns",
        "covers_topics": ".rule_patterns",
        "topic_expression": ".rule_patterns",
        "SystemTopics": ".system_topics",
        "as_column": ".name_columns",
        "check_local_name": ".topic_name",
        "check_local_names": ".name_columns",
        "column_data": ".name_columns",
        "contains": ".name_columns",
        "hash_order_bytes": ".hash_order",
        "hash_order_key": ".hash_order",
        "hash_order_keys": ".hash_order",
        "is_ascending": ".hash_order",
        "listed_topic": ".name_columns",
        "matched_forms": ".name_columns",
        "count_listed": ".listed_names",
        "merge_listed": ".listed_names",
        "name_of_hash_order": ".hash_order",
        "names_of_key": ".hash_order",
        "new_topic_id": ".topic_id",
        "new_topic_ids": ".topic_id",
        "parse_topic_id": ".topic_id",
        "partition_index": ".partitions",
        "partition_name": ".partitions",
        "partitioned_local_name": ".partitions",
        "partitioned_local_names": ".name_columns",
        "sorted_rows": ".hash_order",
        "split_full_names": ".name_columns",
        "split_partitions": ".name_columns",
        "system_topic_mask": ".name_columns",
        "system_topics_rule": ".system_topics",
        "topic_id_text": ".topic_id",
        "topic_in_namespace": ".topic_name",
        "topic_ids_of_a_request": ".topic_id",
        "with_ends": ".name_columns",
        "without_ends": ".name_columns",
    },
)
