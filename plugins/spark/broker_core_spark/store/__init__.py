"""Where generations are kept: a folder or a bucket, what is published there, and what may go."""

from __future__ import annotations

from broker_core_spark.store.store import Store
from broker_core_spark.store.store_address import open_store

__all__ = ["Store", "open_store"]
