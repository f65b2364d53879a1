"""The protocol of a change log: the embedded catalogue's is one, and what lacks a part of it is none."""

from __future__ import annotations

from pathlib import Path

from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.change_log import ChangeLog


class Half:
    name = "half"

    async def catalog_id(self) -> str:
        return "x"


async def test_the_embedded_one_is_a_change_log_and_half_of_one_is_not(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        reader = CatalogLogReader(catalog)
        log: ChangeLog = reader  # as the type checker sees it, too
        assert isinstance(log, ChangeLog)
        reader.close()
    assert not isinstance(Half(), ChangeLog)
