"""Every kind of source has the interface of a source."""

from __future__ import annotations

from broker_core_spark.batch.sources.catalogue_source import CatalogueSource
from broker_core_spark.batch.sources.names_file import NamesSource
from broker_core_spark.batch.sources.parquet_and_tables import TableSource
from broker_core_spark.batch.sources.postgres_database import PostgresSource
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource


def test_a_source_with_a_change_log_is_not_static() -> None:
    kinds: dict[type[CatalogueSource], bool] = {
        EmbeddedSource: False,
        PostgresSource: False,
        NamesSource: True,
        TableSource: True,
    }
    assert {kind: kind.static for kind in kinds} == kinds
