from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.requests import page_parts
from broker_core.service import Logins
from tests.support.kafka_logins import StoredUsersOfTest, logins_of


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as catalog:
        yield catalog


@pytest.fixture(scope="module")
def logins() -> Iterator[Logins]:
    """The logins of one stored user, alice, whose password is pencil."""
    logins = logins_of(StoredUsersOfTest(alice="pencil"))
    yield logins
    logins.close()


@pytest.fixture(autouse=True)
def as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay bytes in tests too, where they are few."""
    monkeypatch.setattr(page_parts, "FEW_ROWS", 0)
