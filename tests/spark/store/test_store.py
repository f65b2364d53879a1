"""All kinds of stores: one of any number of writers creates a name, once and whole."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.store import Store, open_store
from broker_core_spark.store.folder_store import FolderStore
from broker_core_spark.store.store import FileData
from tests.support.generations import memory


@pytest.fixture(params=["folder", "file", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "memory":
        return memory()
    if request.param == "s3":
        return open_store(f"s3://generations/{tmp_path.name}", request.getfixturevalue("s3_options"))
    path = tmp_path / "a folder" / "deep"
    return open_store(str(path) if request.param == "folder" else path.as_uri())


class Replacing(FolderStore):
    """A folder in which a put replaces the file of the same name."""

    def _put(self, path: str, data: FileData, replace: bool) -> bool:
        return super()._put(path, data, replace=True)


def test_a_place_that_creates_a_name_twice_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    store = Replacing(tmp_path)
    for _ in range(2):  # it is not taken for checked
        with pytest.raises(StoreFailed, match="creates a file twice: no place for generations"):
            store.put_new("segments/a", b"")
    assert list(store.list("temporary")) == []


def test_a_file_is_created_once_and_read_back(store: Store) -> None:
    store.check()
    assert list(store.list("temporary")) == []
    assert store.put_new("segments/a", b"first")
    assert not store.put_new("segments/a", b"second")
    assert store.put_new("segments/b", [memoryview(b"from "), b"parts"])
    assert store.get("segments/a", 5) == b"first"
    assert store.get("segments/none", 5) is None
    assert b"".join(store.fetch("segments/b", 10)) == b"from parts"
    with pytest.raises(InvalidGeneration, match="segments/none: it is not in the store"):
        list(store.fetch("segments/none", 1))
    store.replace("segments/b", b"another")
    assert store.get("segments/b", 9) == b"another"


def test_a_file_of_another_size_is_refused(store: Store) -> None:
    store.put_new("segments/a", b"12345")
    with pytest.raises(StoreFailed, match="more than 4"):
        store.get("segments/a", 4)
    for size in (4, 6):
        with pytest.raises(StoreFailed, match=f"segments/a: .* bytes where {size} are expected"):
            list(store.fetch("segments/a", size))


def test_a_part_of_a_file_is_read(store: Store) -> None:
    store.put_new("temporary/a", b"12345")
    assert store.get_range("temporary/a", 1, 3) == b"23"
    with pytest.raises(StoreFailed, match=r"temporary/none is not there: a store is .* all executors share"):
        store.get_range("temporary/none", 0, 1)


def test_blocks_are_read_together_and_only_as_they_were_written(store: Store) -> None:
    store.put_new("temporary/a", b"0123456789")
    blocks = [(2, 5, zlib.crc32(b"234")), (5, 6, zlib.crc32(b"5"))]
    assert [bytes(block) for block in store.get_blocks("temporary/a", blocks)] == [b"234", b"5"]
    store.replace("temporary/a", b"01234X6789")
    read = store.get_blocks("temporary/a", blocks)
    assert bytes(next(read)) == b"234"
    with pytest.raises(DamagedFile, match="temporary/a: bytes 5 to 6 are not those that the build wrote"):
        next(read)


def test_files_are_listed_and_deleted(store: Store) -> None:
    assert list(store.list("segments")) == []
    store.put_new("segments/a", b"1")
    store.put_new("segments/b", b"22")
    store.put_new("segmentsmore/c", b"333")
    found = sorted(store.list("segments"), key=lambda file: file.path)
    assert [(file.path, file.size) for file in found] == [("segments/a", 1), ("segments/b", 2)]
    assert all(abs(datetime.now(UTC) - file.modified) < timedelta(hours=1) for file in found)
    store.delete("segments/a")
    store.delete("segments/a")
    assert [file.path for file in store.list("segments")] == ["segments/b"]
    assert list(store.list("temporary")) == []


def test_many_files_are_put_as_each_alone(store: Store) -> None:
    store.put_new("segments/1", b"first")
    files = [(f"segments/{number}", b"%d" % number) for number in range(300)]
    assert store.put_all_new([*files, ("postings/x", [memoryview(b"from "), b"parts"])]) == [
        number != 1 for number in range(301)
    ]
    assert store.put_all_new([]) == []
    assert store.get("segments/1", 10) == b"first"
    assert store.get("postings/x", 20) == b"from parts"
    found = {file.path: file.size for file in store.list("segments")}
    assert found == {path: len(data) for path, data in files} | {"segments/1": 5}
    assert list(store.list("temporary")) == []


def test_of_many_writers_one_creates_the_name(store: Store) -> None:
    store.check()
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(lambda number: store.put_new("pointers/1", b"%d" % number), range(8)))
    assert won.count(True) == 1
    assert store.get("pointers/1", 10) == b"%d" % won.index(True)


def test_the_numbers_of_files_are_those_with_no_other_leading_zeros(store: Store) -> None:
    assert store.numbered("builds/", ".json") == []
    for name in ("000000000012", "1000000000000", "0000000000013", "12", "x", "000000000003"):
        store.put_new(f"builds/{name}.json", b"")
    store.put_new("builds/000000000004.jsonl", b"")
    numbers = [10**12, 12, 3]
    assert store.numbered("builds/", ".json") == [(one, f"builds/{one:012}.json") for one in numbers]


@pytest.mark.parametrize("path", ["segments/a", "temporary/a-b_c.D9", "x/..a"])
def test_two_parts_of_plain_letters_are_a_path(store: Store, path: str) -> None:
    assert store.put_new(path, b"")
    assert [file.path for file in store.list(path.partition("/")[0])] == [path]


@pytest.mark.parametrize(
    "path",
    ["", "a", "../x", "segments/../../x", "/etc/passwd", "segments/a/b", "segments/..", "segments/", "A/b"],
)
def test_no_path_leads_out_of_a_store(store: Store, path: str) -> None:
    with pytest.raises(StoreFailed, match="no path of a store"):
        store.put_new(path, b"")
    with pytest.raises(StoreFailed, match="no path of a store"):
        store.put_all_new([("segments/a", b""), (path, b"")])
    with pytest.raises(StoreFailed, match="no path of a store"):
        store.replace(path, b"")
