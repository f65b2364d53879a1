"""Stores of generations: folders and buckets, publishing, garbage collection."""

from __future__ import annotations

from broker_core_spark.store.build_and_gc_marks import activities, user_name
from broker_core_spark.store.build_records import (
    read_build_record,
    read_build_totals,
    read_learned,
    write_build_record,
    write_learned,
)
from broker_core_spark.store.file_at_address import addressed_file
from broker_core_spark.store.garbage_collection import collect_garbage
from broker_core_spark.store.private_file import PrivateFile
from broker_core_spark.store.published_pointers import (
    PublishedPointer,
    current_pointer,
    previous_generation,
    read_pointers,
    readable_pointers,
)
from broker_core_spark.store.publishing import BuildRun, begin_build, use_generation
from broker_core_spark.store.reached_store import check_reached, within
from broker_core_spark.store.store import CHUNK, Store
from broker_core_spark.store.store_address import open_store
from broker_core_spark.store.stored_manifest import read_manifest
from broker_core_spark.store.table_changes_file import (
    MOST_CHANGED,
    ChangedName,
    TableChanges,
    newest_changes,
    write_changes,
)
from broker_core_spark.store.verified_files import (
    fetch_verified,
    put_all_verified,
    read_verified,
)

__all__ = [
    "CHUNK",
    "MOST_CHANGED",
    "BuildRun",
    "ChangedName",
    "PrivateFile",
    "PublishedPointer",
    "Store",
    "TableChanges",
    "activities",
    "addressed_file",
    "begin_build",
    "check_reached",
    "collect_garbage",
    "current_pointer",
    "fetch_verified",
    "newest_changes",
    "open_store",
    "previous_generation",
    "put_all_verified",
    "read_build_record",
    "read_build_totals",
    "read_learned",
    "read_manifest",
    "read_pointers",
    "read_verified",
    "readable_pointers",
    "use_generation",
    "user_name",
    "within",
    "write_build_record",
    "write_changes",
    "write_learned",
]
