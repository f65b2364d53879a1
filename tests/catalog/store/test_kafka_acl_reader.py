"""Kafka's ACLs as they are read: changes of any program are noticed at the next look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.catalog import AclRow, AclVersion, KafkaAclReader, SqliteCatalog
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName

NAMESPACE, OTHER = NamespaceName("a", "b"), NamespaceName("a", "c")
ROW = AclRow(2, "orders", 3, "User:ann", "*", 8, 3)


@pytest.fixture
async def reader(catalog: SqliteCatalog) -> AsyncIterator[KafkaAclReader]:
    reader = KafkaAclReader(catalog)
    yield reader
    reader.close()


async def test_a_change_of_another_process_is_noticed_and_read(
    catalog: SqliteCatalog, reader: KafkaAclReader
) -> None:
    assert reader.version_now(NAMESPACE) == AclVersion(catalog.catalog_id, 0, stored=False)
    with SqliteCatalog(catalog.path) as other:
        other.change_kafka_acls(NAMESPACE, add=[ROW])
    now = AclVersion(catalog.catalog_id, 1, stored=True)
    assert reader.version_now(NAMESPACE) == now
    assert reader.version_now(NAMESPACE) is reader.version_now(NAMESPACE)
    assert await reader.read(NAMESPACE) == (now, (ROW,))
    assert reader.version_now(OTHER) == AclVersion(catalog.catalog_id, 0, stored=True)
    assert await reader.read(OTHER) == (AclVersion(catalog.catalog_id, 0, stored=True), ())


async def test_a_catalogue_in_the_place_of_another_one_is_read(
    catalog: SqliteCatalog, reader: KafkaAclReader, tmp_path: Path
) -> None:
    catalog.change_kafka_acls(NAMESPACE, add=[ROW])
    new = tmp_path / "new.sqlite"
    SqliteCatalog(new).close()
    for leftover in catalog.path.parent.glob(f"{catalog.path.name}-*"):
        leftover.unlink()
    new.rename(catalog.path)
    assert reader.version_now(NAMESPACE) is None
    (version, rows), _ = await asyncio.gather(reader.read(NAMESPACE), reader.read(NAMESPACE))
    assert rows == ()
    assert version == reader.version_now(NAMESPACE) == AclVersion(catalog.catalog_id, 0, stored=False)


async def test_a_catalogue_that_is_gone_cannot_be_read(
    catalog: SqliteCatalog, reader: KafkaAclReader
) -> None:
    catalog.path.unlink()
    assert reader.version_now(NAMESPACE) is None
    with pytest.raises(ListingFailed) as failed:
        await reader.read(NAMESPACE)
    assert failed.value.cause is Cause.CATALOG
