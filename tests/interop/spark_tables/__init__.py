"""A Spark with tables of Iceberg and Delta: an older PySpark than that of the other tests, and the jars of both."""

from tests.interop.spark_tables.session import tables_session
from tests.interop.spark_tables.tables import DeltaTable, IcebergTable, TopicTable

__all__ = ["DeltaTable", "IcebergTable", "TopicTable", "tables_session"]
