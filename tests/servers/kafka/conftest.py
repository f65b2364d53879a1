from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        yield catalog
