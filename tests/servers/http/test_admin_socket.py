"""The operator's unix socket: the users that may connect, and what becomes of the file."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.servers.http import AdminSocket, AdminSocketError


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: the path of a socket has a bound."""
    made = Path(tempfile.mkdtemp(prefix="bc-"))
    yield made
    shutil.rmtree(made)


def test_only_the_user_of_the_server_may_connect(folder: Path) -> None:
    umask = os.umask(0)
    try:
        admin = AdminSocket(folder / "a")
    finally:
        os.umask(umask)
    mode = (folder / "a").stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    admin.close()
    admin.close()
    assert list(folder.iterdir()) == []


def test_a_file_that_a_killed_server_left_is_replaced(folder: Path) -> None:
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(folder / "a"))
    left.close()
    admin = AdminSocket(folder / "a")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(folder / "a"))
    admin.close()


def test_a_server_that_runs_keeps_its_socket(folder: Path) -> None:
    first = AdminSocket(folder / "a")
    with pytest.raises(AdminSocketError, match="another process listens there"):
        AdminSocket(folder / "a")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(folder / "a"))
    first.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link to nothing"])
def test_something_else_is_left_as_it_is(folder: Path, kind: str) -> None:
    path = folder / "a"
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        (folder / "b").write_text("mine")
        path.symlink_to(folder / ("b" if kind == "link" else "c"))
    before = path.lstat()
    with pytest.raises(AdminSocketError, match=r"admin\.socket: .*/a: there is something else than a socket"):
        AdminSocket(path)
    assert path.lstat() == before


def test_a_socket_that_took_the_place_is_not_removed(folder: Path) -> None:
    first = AdminSocket(folder / "a")
    (folder / "a").unlink()
    second = AdminSocket(folder / "a")
    first.close()
    assert (folder / "a").exists()
    second.close()
    assert not (folder / "a").exists()


def test_a_socket_whose_folder_is_gone_is_closed_all_the_same(folder: Path) -> None:
    (folder / "b").mkdir()
    admin = AdminSocket(folder / "b" / "a")
    shutil.rmtree(folder / "b")
    admin.close()


@pytest.mark.parametrize(
    ("name", "reason"), [("none/a", "no such file or directory"), ("x" * 200, "has at most 103 bytes")]
)
def test_a_path_that_cannot_be_is_named(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(AdminSocketError, match=reason):
        AdminSocket(folder / name)
