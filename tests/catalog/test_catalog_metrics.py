"""The metrics of the catalogue: changes of any process, and the time of the last one."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from broker_core.catalog import CatalogLister, SqliteCatalog, show_catalog
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import TopicName
from tests.support.catalogue_topics import create_topics
from tests.support.narrowed import present


async def test_changes_of_any_process_are_counted(tmp_path: Path) -> None:
    metrics = Metrics()
    with (
        SqliteCatalog(tmp_path / "topics.sqlite") as catalog,
        contextlib.closing(CatalogLister(catalog, Permits())) as lister,
    ):
        show_catalog(metrics, lister)

        def value(name: str) -> float | None:
            return metrics.registry.get_sample_value(f"broker_core_catalog_{name}")

        assert value("changes_total") is value("last_change_seconds") is None
        create_topics(tmp_path / "topics.sqlite", *(f"persistent://t/n/{name}" for name in "ab"))
        assert value("changes_total") == 2
        last = present(value("last_change_seconds"))
        assert abs(time.time() - last) < 60
        catalog.delete(TopicName.parse("persistent://t/n/a"))
        assert value("changes_total") == 3
