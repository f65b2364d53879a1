"""The catalogue's log for followers: versions at once, changes and gaps, and files that are replaced or gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from broker_core.catalog import CatalogLogReader, Edit, LogBounds, SqliteCatalog, creation
from broker_core.catalog.store.log_rows import LogSpan, SpanBound
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.errors import ListingFailed
from tests.catalog.listers import NAMESPACE, topic
from tests.support.catalogue_topics import create_topics
from tests.support.narrowed import of_type, present


@pytest.fixture
async def reader(catalog: SqliteCatalog) -> AsyncIterator[CatalogLogReader]:
    reader = CatalogLogReader(catalog)
    yield reader
    reader.close()


async def test_a_version_is_known_at_once_and_is_the_newest(
    catalog: SqliteCatalog, reader: CatalogLogReader
) -> None:
    assert await reader.catalog_id() == catalog.catalog_id
    assert reader.version_now(NAMESPACE) == CatalogVersion(catalog.catalog_id, 0)
    catalog.create(topic("x"))
    assert reader.version_now(NAMESPACE) == catalog.version(NAMESPACE)
    create_topics(catalog.path, topic("y"))
    assert reader.version_now(NAMESPACE) == CatalogVersion(catalog.catalog_id, 2)
    assert await reader.version(NAMESPACE) == CatalogVersion(catalog.catalog_id, 2)
    # Without a commit the file is not read again.
    assert reader.version_now(NAMESPACE) is reader.version_now(NAMESPACE)


async def test_names_of_topics_that_were_made_anew(catalog: SqliteCatalog, reader: CatalogLogReader) -> None:
    start = await reader.version(NAMESPACE)
    for name in ("x", "y"):
        catalog.create(topic(name))
    since = await reader.version(NAMESPACE)
    catalog.delete(topic("x"))
    catalog.create(topic("x"))
    assert await reader.recreated(NAMESPACE, since, since, 10) == [str(topic("x"))]
    assert await reader.recreated(NAMESPACE, await reader.version(NAMESPACE), since, 10) == []
    assert await reader.recreated(NAMESPACE, since, since, 0) is None, "there are more"
    assert await reader.recreated(NAMESPACE, start, start, 10) == [str(topic("x"))]
    with patch.object(asyncio, "to_thread", side_effect=AssertionError("a few rows are read at once")):
        catalog.create(topic("w"))
        catalog.delete(topic("w"))
        assert await reader.recreated(NAMESPACE, await reader.version(NAMESPACE), start, 10) == []
    many = [topic(f"many-{number}") for number in range(300)]
    catalog.edit_many(NAMESPACE, [Edit(name, creation(name)) for name in many])
    assert await reader.recreated(NAMESPACE, since, since, 10) == [str(topic("x"))]
    assert await reader.recreated(NAMESPACE, await reader.version(NAMESPACE), since, 10) == []
    with SqliteCatalog(catalog.path, log=LogBounds(versions=1)) as other:
        other.create(topic("z"))
    assert await reader.recreated(NAMESPACE, since, since, 10) is None, "the log was trimmed"
    now = await reader.version(NAMESPACE)
    for restored in (replace(now, number=99), replace(now, stamp="of another file")):
        assert await reader.recreated(NAMESPACE, since, restored, 10) is None, "a copy came back"


async def test_no_names_are_known_of_another_catalogue(
    catalog: SqliteCatalog, reader: CatalogLogReader, tmp_path: Path
) -> None:
    catalog.create(topic("x"))
    since = await reader.version(NAMESPACE)
    copied = tmp_path / "copy.sqlite"
    create_topics(copied, topic("x"))
    copied.replace(catalog.path)
    assert await reader.recreated(NAMESPACE, since, since, 10) is None


async def test_changes_and_gaps(catalog: SqliteCatalog, reader: CatalogLogReader) -> None:
    before = await reader.version(NAMESPACE)
    catalog.create(topic("x"))
    catalog.delete(topic("x"))
    changes = of_type(await reader.changes(NAMESPACE, before), Changes)
    assert [(change.version, change.operation.value) for change in changes] == [(1, "create"), (2, "delete")]
    assert changes.version == reader.version_now(NAMESPACE)
    gap = of_type(await reader.changes(NAMESPACE, CatalogVersion("another", 1)), Gap)
    assert "another catalogue" in gap.reason


async def test_another_file_in_its_place_has_another_id(
    catalog: SqliteCatalog, reader: CatalogLogReader
) -> None:
    catalog.create(topic("x"))
    before = await reader.version(NAMESPACE)
    other = catalog.path.with_name("other.sqlite")
    with SqliteCatalog(other) as made:
        made.create(topic("y"))
        connection = made.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        other_id = made.catalog_id
    for leftover in catalog.path.parent.glob(f"{catalog.path.name}-*"):
        leftover.unlink()
    other.rename(catalog.path)

    assert reader.version_now(NAMESPACE) is None
    versions = await asyncio.gather(*(reader.version(NAMESPACE) for _ in range(4)))
    assert set(versions) == {CatalogVersion(other_id, 1)}
    assert await reader.catalog_id() == other_id
    assert reader.version_now(NAMESPACE) == CatalogVersion(other_id, 1)
    assert isinstance(await reader.changes(NAMESPACE, before), Gap)


async def test_a_file_that_is_gone_is_an_error(catalog: SqliteCatalog, reader: CatalogLogReader) -> None:
    version = await reader.version(NAMESPACE)
    catalog.path.unlink()
    assert reader.version_now(NAMESPACE) is None
    for asked in (reader.version(NAMESPACE), reader.changes(NAMESPACE, version), reader.catalog_id()):
        with pytest.raises(ListingFailed, match="Cannot read the catalogue"):
            await asked


async def test_a_locked_or_broken_file_is_an_error_of_the_log(tmp_path: Path) -> None:
    """Closed, the catalogue can be read no more; the version that the watch reads at once still is."""
    catalog = SqliteCatalog(tmp_path / "c.sqlite")
    reader = CatalogLogReader(catalog)
    version = await reader.version(NAMESPACE)
    catalog.close()
    with pytest.raises(ListingFailed, match="closed"):
        await reader.changes(NAMESPACE, version)
    reader.close()
    with pytest.raises(ListingFailed, match="closed"):
        await reader.version(NAMESPACE)


async def test_a_commit_of_anybody_is_another_state(catalog: SqliteCatalog, reader: CatalogLogReader) -> None:
    state = present(reader.state_now())
    assert reader.state_now() == state
    create_topics(catalog.path, topic("y"))
    assert reader.state_now() not in {state, None}
    catalog.path.unlink()
    assert reader.state_now() is None


async def test_a_span_is_found_before_its_changes_are_read(
    catalog: SqliteCatalog, reader: CatalogLogReader
) -> None:
    for name in "xy":
        catalog.create(topic(name))
    span = of_type(await reader.span(NAMESPACE, CatalogVersion(catalog.catalog_id, 0), SpanBound(1)), LogSpan)
    assert (span.end.number, span.more) == (1, True)
    changes = of_type(await reader.changes_of(NAMESPACE, span), Changes)
    assert [each.name for each in changes] == [topic("x")]
