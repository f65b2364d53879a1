"""A store that creates a name twice is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import open_store
from broker_core_spark.store.create_once_check import check_creates_once
from broker_core_spark.store.folder_store import FolderStore
from tests.support.generations import memory


class Replacing(FolderStore):
    """A folder in which a put replaces the file of the same name."""

    def put_new(self, path: str, data: object) -> bool:
        assert isinstance(data, bytes)
        self.replace(path, data)
        return True


def test_a_store_that_creates_once_is_fine_and_left_as_it_was(tmp_path: Path) -> None:
    for store in (memory(), open_store(str(tmp_path))):
        check_creates_once(store, "it creates twice")
        assert list(store.list("temporary")) == []


def test_a_store_that_replaces_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    store = Replacing(tmp_path)
    store._checked = True
    with pytest.raises(StoreFailed, match="it creates twice"):
        check_creates_once(store, "it creates twice")
    assert list(store.list("temporary")) == []
