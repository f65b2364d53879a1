"""A file of a generation is fetched whole, or refused by its name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.format.manifest import FileEntry
from broker_core_spark.store.fetch_file import fetched
from tests.support.generations import memory

DATA = b"the content"
ENTRY = FileEntry(f"segments/{hashlib.sha256(DATA).hexdigest()}.seg", len(DATA))


def test_a_file_is_mapped_as_it_is_in_the_store() -> None:
    store = memory()
    store.put_new(ENTRY.name, DATA)
    assert bytes(fetched(store, ENTRY, None)) == DATA


@pytest.mark.parametrize(
    ("found", "wrong"), [(DATA[::-1], "checksum"), (DATA[:-1], "bytes where"), (DATA + b"x", "bytes where")]
)
def test_another_content_is_refused(found: bytes, wrong: str) -> None:
    store = memory()
    store.put_new(ENTRY.name, found)
    with pytest.raises((InvalidGeneration, DamagedFile), match=wrong):
        fetched(store, ENTRY, None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidGeneration, match="it is not in the store") as caught:
        fetched(memory(), ENTRY, None)
    assert caught.value.file == ENTRY.name
    store = memory()
    store.put_new(ENTRY.name, DATA)
    with pytest.raises(StoreFailed, match="no private copy"):
        fetched(store, ENTRY, str(tmp_path / "nothing"))
