"""A file whose name is its content is read back where it is there already, and replaced where it is damaged."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import pytest

from broker_core_spark.store import Store, open_store
from broker_core_spark.store.verify_file import fault_of, faults_of, put_content
from tests.support.generations import memory

DATA = b"the content"
FILE = (f"segments/{hashlib.sha256(DATA).hexdigest()}.seg", len(DATA), hashlib.sha256(DATA).hexdigest())


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return memory() if request.param == "memory" else open_store(str(tmp_path))


@pytest.mark.parametrize("as_file", [False, True])
@pytest.mark.parametrize("found", [b"The content", b"the cont", b"the content and more", b""])
def test_what_is_damaged_is_replaced(store: Store, found: bytes, as_file: bool) -> None:
    store.put_new(FILE[0], found)
    assert fault_of(store, FILE) is not None
    assert put_content(store, FILE, io.BytesIO(DATA) if as_file else DATA)
    assert store.get(FILE[0], 100) == DATA
    assert fault_of(store, FILE) is None
    assert [file.path for file in store.list("segments")] == [FILE[0]]
    assert list(store.list("temporary")) == []


def test_what_is_whole_is_left_alone(store: Store) -> None:
    assert put_content(store, FILE, DATA)
    (before,) = store.list("segments")
    assert not put_content(store, FILE, io.BytesIO(DATA))
    assert list(store.list("segments")) == [before]


def test_faults_are_told_by_the_file(store: Store) -> None:
    put_content(store, FILE, DATA)
    store.put_new("segments/cut", DATA[:3])
    store.put_new("segments/changed", DATA[::-1])
    files = [FILE, *((f"segments/{name}", *FILE[1:]) for name in ("cut", "gone", "changed"))]
    found = dict(faults_of(store, files))
    assert list(found) == ["segments/cut", "segments/gone", "segments/changed"]
    assert "3 bytes where 11 are expected" in found["segments/cut"]
    assert found["segments/gone"] == "it is not in the store"
    assert "checksum" in found["segments/changed"]


def test_a_pipe_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    (tmp_path / "segments").mkdir()
    os.mkfifo(tmp_path / FILE[0])
    assert "no regular file" in str(fault_of(store, FILE))
    assert put_content(store, FILE, DATA)
    assert (tmp_path / FILE[0]).read_bytes() == DATA
