"""The table of rows that are no topics: in an order of its own."""

from __future__ import annotations

from broker_core_spark.batch.reports.quarantine_table import QUARANTINE_SCHEMA, quarantine_table
from broker_core_spark.batch.sources.quarantine import QuarantinedRow


def test_the_order_is_that_of_lines_and_names() -> None:
    rows = [
        QuarantinedRow.of("b", "why", namespace="t/n", domain="persistent"),
        QuarantinedRow.of(None, "no name"),
        QuarantinedRow.of("x", "why", line=9),
        QuarantinedRow.of("y", "why", line=2),
    ]
    table = quarantine_table(rows)
    assert table.schema == QUARANTINE_SCHEMA
    assert table.column("name").to_pylist() == [None, "b", "y", "x"]
    assert table.slice(1, 1).to_pylist() == [
        {"name": "b", "namespace": "t/n", "domain": "persistent", "reason": "why", "line": None}
    ]
    assert quarantine_table([]).num_rows == 0
