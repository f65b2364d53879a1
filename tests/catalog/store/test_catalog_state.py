"""One state of a catalogue, read while other processes write."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import CatalogError, SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import NON_PERSISTENT, PERSISTENT, NamespaceName, TopicName
from tests.support.narrowed import of_type

NAMESPACE = NamespaceName("a", "b")
OTHER = NamespaceName("a", "c")


def topic(text: str) -> TopicName:
    return TopicName.parse(text)


def test_it_stays_while_others_write(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("persistent://a/b/x"), partitions=2, properties={"region": "eu"})
        catalog.create(topic("persistent://a/b/y"))
        catalog.create(topic("non-persistent://a/b/z"))
        first = catalog.version(NAMESPACE)
        with catalog.state() as state:
            catalog.create(topic("persistent://a/b/later"))
            catalog.create(topic("persistent://a/c/later"))
            assert state.catalog_id == catalog.catalog_id
            assert list(state) == [NAMESPACE]
            assert state.versions[NAMESPACE].same_state(first)
            assert state.versions[NAMESPACE].stamp
            loaded = state.names(NAMESPACE, PERSISTENT, ["region", "team"])
            found = dict(zip(loaded.names.to_pylist(), loaded.properties["region"].to_pylist(), strict=True))
            assert found == {"x-partition-0": "eu", "x-partition-1": "eu", "y": None}
            assert loaded.properties["team"].null_count == 3
            assert state.names(NAMESPACE, NON_PERSISTENT).names.to_pylist() == ["z"]
            assert len(state.names(OTHER, PERSISTENT).names) == 0
            changes = of_type(state.changes(NAMESPACE, CatalogVersion(state.catalog_id, 1)), Changes)
            assert [str(change.name) for change in changes] == [
                "persistent://a/b/y",
                "non-persistent://a/b/z",
            ]
            assert isinstance(state.changes(NAMESPACE, CatalogVersion("other", 1)), Gap)
        with catalog.state() as state:
            assert list(state) == [NAMESPACE, OTHER]


def test_what_is_no_domain_is_refused(tmp_path: Path) -> None:
    with (
        SqliteCatalog(tmp_path / "c.sqlite") as catalog,
        catalog.state() as state,
        pytest.raises(CatalogError, match="persistent, non-persistent"),
    ):
        state.names(NAMESPACE, "other")


def test_what_sqlite_refuses_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with SqliteCatalog(path) as catalog:
        catalog.create(topic("persistent://a/b/x"))
        with catalog.state() as state:
            state._connection.execute("ROLLBACK")
            state._connection.execute("DROP TABLE changes")
            with pytest.raises(CatalogError, match=str(path)):
                state.changes(NAMESPACE, CatalogVersion(state.catalog_id, 1))
