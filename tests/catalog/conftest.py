"""The catalogue for most tests of this folder, and its lister."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from tests.catalog.listers import MB, Reads, permits_of


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        yield opened


@pytest.fixture
def permits() -> Permits:
    return permits_of(100 * MB)


@pytest.fixture
def budget(permits: Permits) -> PermitBudget:
    return permits.snapshots


@pytest.fixture
async def lister(catalog: SqliteCatalog, permits: Permits) -> AsyncIterator[CatalogLister]:
    made = CatalogLister(catalog, permits, property_keys=("region", "team"))
    yield made
    made.close()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)
