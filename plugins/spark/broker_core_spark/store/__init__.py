"""Stores of generations: folders and buckets, publishing, garbage collection."""

from __future__ import annotations

from broker_core_spark.store.store import Store
from broker_core_spark.store.store_address import open_store

__all__ = ["Store", "open_store"]
