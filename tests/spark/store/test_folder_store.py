"""An unsuitable folder is refused with the reason, and a failed write leaves nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.folder_store import TEMPORARY, FolderStore


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_file_system_without_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(StoreFailed, match=r"makes no hard links \(Operation not permitted\).*no place"):
        FolderStore(tmp_path).put_new("segments/a", b"")
    assert files(tmp_path) == []


def test_a_file_system_that_creates_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", os.replace)  # a link replaces the file
    with pytest.raises(StoreFailed, match="creates a file twice"):
        FolderStore(tmp_path).put_new("segments/a", b"")


def test_a_link_whose_answer_was_lost_is_seen_to_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    store.check()
    link = os.link

    def lost(source: Any, target: Any) -> None:
        """NFS: the link is made, its answer is lost, and the request is sent again."""
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", lost)
    assert store.put_new("segments/a", b"x")
    assert not store.put_new("segments/a", b"y")
    assert files(tmp_path) == ["segments/a"]


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield b"x"
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(StoreFailed, match="cannot write segments/a: Input/output error"):
        FolderStore(tmp_path).put_new("segments/a", failing())
    assert files(tmp_path) == []


def test_of_files_beside_a_source_that_fails_each_is_whole_or_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.check()
    freed = memoryview(b"x")
    freed.release()
    with pytest.raises(ValueError, match="released"):
        store.put_all_new([("segments/a", b"x"), ("segments/b", [freed]), ("segments/c", b"x")])
    assert set(files(tmp_path)) <= {"segments/a", "segments/c"}
    assert all((tmp_path / path).read_bytes() == b"x" for path in files(tmp_path))


@pytest.mark.parametrize(
    "paths",
    [["segments/0"], [*(f"segments/{number}" for number in range(9)), "postings/x"]],
    ids=["one", "many"],
)
def test_files_get_their_names_when_their_bytes_are_durable_and_the_names_are_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    store = FolderStore(tmp_path)
    store.check()
    steps: list[tuple[str, int]] = []  # what is done to which file or folder
    sync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        sync(descriptor)
        steps.append(("sync", os.fstat(descriptor).st_ino))

    def linked(source: Any, target: Any) -> None:
        link(source, target)
        steps.append(("link", Path(target).stat().st_ino))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    assert all(store.put_all_new([(path, b"x" * 9) for path in paths]))
    inodes = [(tmp_path / path).stat().st_ino for path in paths]
    folders = [
        (tmp_path / folder).stat().st_ino for folder in dict.fromkeys(Path(path).parts[0] for path in paths)
    ]
    number = 2 * len(paths)
    for inode in inodes:
        assert [step for step in steps[:number] if step[1] == inode] == [("sync", inode), ("link", inode)]
    assert sorted(steps[number:]) == sorted(("sync", inode) for inode in folders)


@pytest.mark.parametrize("path", ["segments/a", "segments/b"])
def test_bytes_that_cannot_be_made_durable_get_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    store = FolderStore(tmp_path)
    store.check()
    sync = os.fsync

    def failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").read_bytes() == path.encode():
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StoreFailed, match=f"cannot write {path}: Input/output error"):
        store.put_all_new([(name, name.encode()) for name in ("segments/a", "segments/b")])
    assert path not in files(tmp_path)
    assert [name for name in files(tmp_path) if name.startswith(TEMPORARY)] == []


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FolderStore(tmp_path / "file")
    for use in (
        lambda: store.put_new("segments/a", b""),
        lambda: store.get("segments/a", 1),
        lambda: list(store.fetch("segments/a", 1)),
        lambda: list(store.list("segments")),
        lambda: store.delete("segments/a"),
    ):
        with pytest.raises(StoreFailed, match=r"file: cannot \w+ "):
            use()


def test_what_lies_around_is_not_listed(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_new("segments/a", b"")
    (tmp_path / "segments" / "folder").mkdir()
    (tmp_path / "segments" / "link").symlink_to("a")
    assert [file.path for file in store.list("segments")] == ["segments/a"]
    assert (tmp_path / TEMPORARY).is_dir()


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_regular_file_is_told_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    (tmp_path / "segments").mkdir()
    if kind == "pipe":
        os.mkfifo(tmp_path / "segments" / "a")
    else:
        (tmp_path / "segments" / "a").mkdir()
    store = FolderStore(tmp_path)
    for use in (
        lambda: store.get("segments/a", 1),
        lambda: store.get_range("segments/a", 0, 1),
        lambda: list(store.fetch("segments/a", 1)),
    ):
        with pytest.raises(DamagedFile, match="segments/a: it is no regular file"):
            use()
