"""An unsuitable folder is refused with the reason, and a failed write leaves nothing."""

from __future__ import annotations

import errno
import io
import os
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
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(StoreFailed, match="cannot write segments/a: Input/output error"):
        FolderStore(tmp_path).put_new("segments/a", Failing())
    assert files(tmp_path) == []


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = FolderStore(tmp_path / "file")
    for use in (
        lambda: store.put_new("segments/a", b""),
        lambda: store.get("segments/a", 1),
        lambda: store.fetch("segments/a", io.BytesIO(), 1),
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
        lambda: store.fetch("segments/a", io.BytesIO(), 1),
    ):
        with pytest.raises(DamagedFile, match="segments/a: it is no regular file"):
            use()
