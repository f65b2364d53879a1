"""The folder of stored snapshots: whole files or none, and nothing in it or about it is in anybody's way."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.snapshots.stored.file_errors import FolderUnusable, RefusedFile
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder, folder_beside


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(tmp_path / "topics.db.snapshots", left_free=0)


def test_it_is_beside_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "topics.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "data" / "topics.db")
    assert (
        folder_beside(tmp_path / "link.db")
        == Path(os.path.realpath(tmp_path)) / "data" / "topics.db.snapshots"
    )


def test_a_file_is_written_whole_and_replaced_as_a_whole(folder: SnapshotFolder) -> None:
    pieces = [b"a", bytearray(b"bc"), memoryview(b""), *[b"x"] * 1500]
    folder.write("name", pieces)
    assert folder.read("name", 10_000) == b"abc" + b"x" * 1500
    folder.write("name", [b"new"], wait_for_disk=True)
    assert folder.read("name", 10_000) == b"new"
    assert [file.name for file in folder.files()] == ["name"]
    assert stat.S_IMODE((folder.path / "name").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


def test_there_is_nothing_in_a_folder_that_is_not_there(folder: SnapshotFolder) -> None:
    assert folder.files() == []
    assert not folder.touch("name")
    assert not folder.has("name", 1)
    assert not folder.remove("name")
    with pytest.raises(FileNotFoundError):
        folder.read("name", 1)
    assert not folder.path.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc/passwd", "..", ".", "", "a\0b"])
def test_no_name_leads_out_of_it(folder: SnapshotFolder, name: str) -> None:
    folder.write("name", [b"1"])
    with pytest.raises(RefusedFile, match="no name of a file"):
        folder.read(name, 100)
    with pytest.raises(RefusedFile, match="no name of a file"):
        folder.write(name, [b"1"])
    assert not folder.remove(name)
    assert not folder.touch(name)


def test_what_is_no_file_is_refused_without_waiting(folder: SnapshotFolder, tmp_path: Path) -> None:
    folder.write("file", [b"1"])
    (folder.path / "folder").mkdir()
    os.mkfifo(folder.path / "fifo")
    (folder.path / "link").symlink_to(folder.path / "file")
    for name in ("folder", "fifo"):
        with pytest.raises(RefusedFile, match="no file"):
            folder.read(name, 100)
    with pytest.raises(OSError, match="symbolic links"):
        folder.read("link", 100)
    assert not any(folder.has(name, 1) for name in ("folder", "fifo", "link"))
    assert folder.sizes(["folder", "fifo", "link", "missing", "file"]) == [None, None, None, None, 1]


def test_a_large_file_is_not_read(folder: SnapshotFolder) -> None:
    folder.write("file", [b"12345"])
    os.truncate(folder.path / "file", 2**40)
    with pytest.raises(RefusedFile, match="more than 1000"):
        folder.read("file", 1000)


def test_has_compares_the_size_and_notes_the_use(folder: SnapshotFolder) -> None:
    folder.write("file", [b"12345"])
    os.utime(folder.path / "file", (1, 1))
    assert not folder.has("file", 4)
    assert not folder.has("file", 6)
    assert folder.files()[0].used == 1
    assert folder.has("file", 5)
    assert folder.files()[0].used > 1


def test_what_was_used_lately_is_not_removed(folder: SnapshotFolder) -> None:
    folder.write("file", [b"1"])
    assert not folder.remove("file", unused_for=1000)
    os.utime(folder.path / "file", (1, 1))
    assert folder.remove("file", unused_for=1000)


def test_a_folder_that_can_be_used_or_made_has_no_problem(folder: SnapshotFolder) -> None:
    assert folder.problem() is None
    folder.write("file", [b"1"])
    assert folder.problem() is None
    folder.path.chmod(0o777)
    assert "all may write" in str(folder.problem())


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = SnapshotFolder(tmp_path / "missing" / "own").problem()
    assert missing == f"{tmp_path}/missing/own: there is no folder {tmp_path}/missing, so nothing is stored"
    monkeypatch.setattr(os, "access", lambda *_, **__: False)  # root may do anything
    assert "cannot be made in" in str(SnapshotFolder(tmp_path / "own").problem())


def test_a_folder_that_its_group_may_write_into_is_used(folder: SnapshotFolder) -> None:
    folder.write("file", [b"1"])
    folder.path.chmod(0o2770)
    assert folder.read("file", 9) == b"1"


@pytest.mark.parametrize("mode", [0o702, 0o707, 0o777])
def test_a_folder_that_all_may_write_into_is_not_used(folder: SnapshotFolder, mode: int) -> None:
    folder.write("file", [b"1"])
    folder.path.chmod(mode)
    for do in (lambda: folder.read("file", 9), lambda: folder.write("file", [b"2"])):
        with pytest.raises(FolderUnusable, match="all may write"):
            do()
    assert folder.files() == []


def test_a_link_or_a_file_in_its_place_is_not_used(folder: SnapshotFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderUnusable, match="is no folder, or a link to one: remove it"):
        folder.write("file", [b"1"])
    assert folder.files() == []
    folder.path.unlink()
    folder.path.write_text("a file")
    with pytest.raises(FolderUnusable, match="is no folder, or a link to one: remove it"):
        folder.write("file", [b"1"])
    assert folder.path.read_text() == "a file"


def test_a_folder_that_is_removed_is_made_again(folder: SnapshotFolder) -> None:
    folder.write("file", [b"1"])
    (folder.path / "file").unlink()
    folder.path.rmdir()
    folder.write("file", [b"2"])
    assert folder.read("file", 9) == b"2"


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may have more than 100,000 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_file_that_fails_in_the_midst_leaves_nothing(folder: SnapshotFolder) -> None:
    folder.write("file", [b"old"])
    with pytest.raises(OSError, match="too large"):
        folder.write("file", [bytes(60_000), bytes(60_000)])
    assert folder.read("file", 9) == b"old"
    assert [file.name for file in folder.files()] == ["file"]


def test_a_rest_of_the_disk_is_left_to_others(tmp_path: Path) -> None:
    folder = SnapshotFolder(tmp_path / "s", left_free=2**60)
    with pytest.raises(OSError, match="the last 1048576TB of the disk are left to others"):
        folder.write("file", [b"1"])
    assert folder.files() == []


def test_writers_of_one_name_leave_one_whole_file(folder: SnapshotFolder) -> None:
    contents = [bytes([number]) * 300_000 for number in range(8)]
    threads = [threading.Thread(target=folder.write, args=("file", [each])) for each in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folder.read("file", 300_000) in contents
    assert len(folder.files()) == 1
