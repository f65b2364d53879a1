"""A file named by its checksum is verified when it is read, and replaced if it is damaged."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.format.manifest import FileEntry
from broker_core_spark.store import Store, open_store
from broker_core_spark.store.verified_files import (
    fetch_verified,
    file_fault,
    file_faults,
    put_all_verified,
    read_verified,
)
from tests.support.generations import memory

DATA = b"the content"
FILE = FileEntry(f"segments/{hashlib.sha256(DATA).hexdigest()}.seg", len(DATA))


def parts(data: bytes) -> list[memoryview]:
    return [memoryview(data[:4]), memoryview(data[4:])]


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return memory() if request.param == "memory" else open_store(str(tmp_path))


@pytest.mark.parametrize("in_parts", [False, True])
@pytest.mark.parametrize("found", [b"The content", b"the cont", b"the content and more", b""])
def test_what_is_damaged_is_replaced(store: Store, found: bytes, in_parts: bool) -> None:
    store.put_new(FILE.name, found)
    assert file_fault(store, FILE) is not None
    assert put_all_verified(store, [(FILE, parts(DATA) if in_parts else DATA)]) == [True]
    assert store.get(FILE.name, 100) == DATA
    assert file_fault(store, FILE) is None
    assert [file.path for file in store.list("segments")] == [FILE.name]
    assert list(store.list("temporary")) == []


def test_of_many_files_the_damaged_and_the_missing_are_written(store: Store) -> None:
    contents = [b"content %d" % number for number in range(6)]
    entries = [FileEntry(f"segments/{hashlib.sha256(data).hexdigest()}.seg", len(data)) for data in contents]
    store.put_new(entries[1].name, contents[1])
    store.put_new(entries[4].name, b"damaged")
    files = [(entry, parts(data)) for entry, data in zip(entries, contents, strict=True)]
    first, *others, again = put_all_verified(store, [*files, (entries[0], contents[0])])
    assert others == [False, True, True, True, True]
    assert first != again  # a bucket is sent them at once: either may come first
    assert file_faults(store, entries) == [None] * 6
    assert put_all_verified(store, []) == []


def test_what_is_whole_is_left_alone(store: Store) -> None:
    assert put_all_verified(store, [(FILE, DATA)]) == [True]
    (before,) = store.list("segments")
    assert put_all_verified(store, [(FILE, parts(DATA))]) == [False]
    assert list(store.list("segments")) == [before]


def test_faults_are_told_by_the_file(store: Store) -> None:
    put_all_verified(store, [(FILE, DATA)])
    store.put_new("segments/cut", DATA[:3])
    store.put_new("segments/changed", DATA[::-1])
    files = [FILE, *(FileEntry(f"segments/{name}", FILE.size) for name in ("cut", "gone", "changed"))]
    whole, cut, gone, changed = file_faults(store, files)
    assert (whole, gone) == (None, "it is not in the store")
    assert "3 bytes where 11 are expected" in str(cut)
    assert "checksum" in str(changed)


def test_a_pipe_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    (tmp_path / "segments").mkdir()
    os.mkfifo(tmp_path / FILE.name)
    assert "no regular file" in str(file_fault(store, FILE))
    assert put_all_verified(store, [(FILE, DATA)]) == [True]
    assert (tmp_path / FILE.name).read_bytes() == DATA


def test_a_file_is_mapped_as_it_is_in_the_store() -> None:
    store = memory()
    store.put_new(FILE.name, DATA)
    assert bytes(fetch_verified(store, FILE, None)) == DATA


@pytest.mark.parametrize(
    ("found", "wrong"), [(DATA[::-1], "checksum"), (DATA[:-1], "bytes where"), (DATA + b"x", "bytes where")]
)
def test_another_content_is_refused(found: bytes, wrong: str) -> None:
    store = memory()
    store.put_new(FILE.name, found)
    with pytest.raises((InvalidGeneration, DamagedFile), match=wrong):
        fetch_verified(store, FILE, None)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidGeneration, match="it is not in the store") as caught:
        fetch_verified(memory(), FILE, None)
    assert caught.value.file == FILE.name
    store = memory()
    store.put_new(FILE.name, DATA)
    with pytest.raises(StoreFailed, match="cannot keep a private copy"):
        fetch_verified(store, FILE, str(tmp_path / "nothing"))


def test_a_file_is_read_into_memory_with_the_same_checks(store: Store) -> None:
    store.put_new(FILE.name, DATA)
    assert read_verified(store, FILE).to_pybytes() == DATA
    store.replace(FILE.name, b"The content")
    with pytest.raises(InvalidGeneration, match="its checksum"):
        read_verified(store, FILE)
    for size in (len(DATA) + 1, 2**62):  # the latter is more than any memory
        with pytest.raises(DamagedFile):
            read_verified(store, FileEntry(FILE.name, size))
