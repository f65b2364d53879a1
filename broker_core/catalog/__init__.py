"""The embedded catalogue: topics in one SQLite file, and listings from it if neither a plugin nor a cluster answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.catalog.bulk_changes import (
    DeletionReport,
    PropertiesChange,
    PropertiesReport,
    delete_matching,
    delete_of_file,
    set_properties,
    set_properties_of_matching,
)
from broker_core.catalog.catalog_errors import (
    CatalogBusy,
    CatalogError,
    CatalogFull,
    CatalogReadOnly,
    CatalogUnusable,
    ExportRefused,
    ImportRefused,
    NotNames,
    PairRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
)

# Names that are imported `as` themselves, here and below, are for other parts of the core.
from broker_core.catalog.catalog_errors import NameCollides as NameCollides
from broker_core.catalog.catalog_errors import PartitionCountRefused as PartitionCountRefused
from broker_core.catalog.catalog_errors import PartitionedRefused as PartitionedRefused
from broker_core.catalog.catalog_errors import PartitionRefused as PartitionRefused
from broker_core.catalog.catalog_errors import PreconditionFailed as PreconditionFailed
from broker_core.catalog.catalog_errors import reading_catalog as reading_catalog
from broker_core.catalog.store.catalog_file import is_alone as is_alone
from broker_core.catalog.store.change_log_reader import CatalogLogReader
from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.format_migration import Migration, MigrationAhead, migration_ahead
from broker_core.catalog.store.kafka_acl_reader import AclVersion as AclVersion
from broker_core.catalog.store.kafka_acl_reader import KafkaAclReader as KafkaAclReader
from broker_core.catalog.store.kafka_administration import AclRow as AclRow
from broker_core.catalog.store.kafka_administration import ScramRow as ScramRow
from broker_core.catalog.store.log_rows import SpanBound as SpanBound
from broker_core.catalog.store.namespace_counts import (
    NamespaceCount as NamespaceCount,
)  # for other parts of the core
from broker_core.catalog.store.namespace_counts import NamespaceCounts as NamespaceCounts
from broker_core.catalog.store.namespace_counts import NamespaceFilter as NamespaceFilter
from broker_core.catalog.store.namespace_counts import NamespaceState as NamespaceState
from broker_core.catalog.store.namespace_counts import summarize as summarize
from broker_core.catalog.store.sqlite_catalog import CatalogState, SqliteCatalog
from broker_core.catalog.store.topic_rows import Edit as Edit
from broker_core.catalog.topic_decisions import Decide as Decide
from broker_core.catalog.topic_decisions import TopicWrite as TopicWrite
from broker_core.catalog.topic_decisions import adjustment as adjustment
from broker_core.catalog.topic_decisions import creation as creation
from broker_core.catalog.topic_decisions import deletion as deletion
from broker_core.catalog.topic_decisions import has_name as has_name
from broker_core.catalog.topic_decisions import merge as merge
from broker_core.catalog.topic_decisions import replacement as replacement
from broker_core.catalog.topic_files.export_file import ExportFormat, export_topics, has_odd_names
from broker_core.catalog.topic_files.import_file import Allow as Allow
from broker_core.catalog.topic_files.import_file import ImportReport, import_topics
from broker_core.catalog.topic_files.topic_file_reader import TopicLines, TopicRows
from broker_core.catalog.topic_record import MAX_PROPERTIES_BYTES as MAX_PROPERTIES_BYTES
from broker_core.catalog.topic_record import Catalog, TopicRecord, check_properties
from broker_core.change_log import CatalogVersion, Change, Changes, Gap, ListedNames, Operation
from broker_core.lazy_exports import lazy_exports
from broker_core.names import parse_topic_id, topic_id_text, topic_in_namespace

if TYPE_CHECKING:
    from broker_core.catalog.async_catalog import FEW_TOPICS as FEW_TOPICS
    from broker_core.catalog.async_catalog import AsyncCatalog as AsyncCatalog
    from broker_core.catalog.catalog_lister import CatalogLister
    from broker_core.catalog.catalog_metrics import (
        show_catalog as show_catalog,
    )  # for other parts of the core

__all__ = [
    "Catalog",
    "CatalogBusy",
    "CatalogError",
    "CatalogFull",
    "CatalogLister",
    "CatalogLogReader",
    "CatalogReadOnly",
    "CatalogState",
    "CatalogUnusable",
    "CatalogVersion",
    "Change",
    "Changes",
    "DeletionReport",
    "ExportFormat",
    "ExportRefused",
    "Gap",
    "ImportRefused",
    "ImportReport",
    "ListedNames",
    "LogBounds",
    "Migration",
    "MigrationAhead",
    "NotNames",
    "Operation",
    "PairRefused",
    "PropertiesChange",
    "PropertiesReport",
    "SqliteCatalog",
    "TopicExists",
    "TopicInvalid",
    "TopicLines",
    "TopicMissing",
    "TopicRecord",
    "TopicRows",
    "check_properties",
    "delete_matching",
    "delete_of_file",
    "export_topics",
    "has_odd_names",
    "import_topics",
    "migration_ahead",
    "parse_topic_id",
    "set_properties",
    "set_properties_of_matching",
    "topic_id_text",
    "topic_in_namespace",
]

# What serves listings takes an eighth of the start of a command that changes a topic.
__getattr__ = lazy_exports(
    __name__,
    {
        "FEW_TOPICS": ".async_catalog",
        "AsyncCatalog": ".async_catalog",
        "CatalogLister": ".catalog_lister",
        "show_catalog": ".catalog_metrics",
    },
)
