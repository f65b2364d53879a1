"""Filling the database: from a file, from a cluster or the embedded catalogue, or property by property."""

from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.load_file import LoadReport, load_topics
from broker_core_postgres.fill.merge import MergeCounts
from broker_core_postgres.fill.property_changes import (
    TopicPropertiesReport,
    set_properties,
    set_properties_of_matching,
    storable_change,
)
from broker_core_postgres.fill.table_maintenance import maintain_topics

__all__ = [
    "FillingFailed",
    "LoadReport",
    "MergeCounts",
    "TopicPropertiesReport",
    "load_topics",
    "maintain_topics",
    "set_properties",
    "set_properties_of_matching",
    "storable_change",
]
