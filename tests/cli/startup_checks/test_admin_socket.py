"""The line of `broker-core check` about the operator's socket."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.cli.startup_checks.admin_socket import admin_socket_checks
from broker_core.testing import serve


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path: the path of a socket has a bound."""
    made = Path(tempfile.mkdtemp(prefix="bc-"))
    yield made
    shutil.rmtree(made)


def _found(path: Path) -> tuple[str, str]:
    (found,) = (check for check in admin_socket_checks(path) if check.name == "admin.socket")
    return found.level, found.text


def test_none_is_no_finding() -> None:
    assert list(admin_socket_checks(None)) == []


def test_a_place_where_it_can_be_made(folder: Path) -> None:
    assert _found(folder / "a") == ("ok", f"{folder}/a can be listened on")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(folder / "a"))
    assert _found(folder / "a")[0] == "ok", "a server that was killed left it"
    assert (folder / "a").exists(), "nothing is changed"


def test_places_where_it_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("mine")
    for path, reason in (
        (folder / "none" / "a", f"there is no folder {folder}/none"),
        (folder / "file" / "a", f"there is no folder {folder}/file"),
        (folder / "file", "there is something else than a socket"),
        (folder / ("x" * 200), "has at most 103 bytes"),
    ):
        level, text = _found(path)
        assert level == "error"
        assert text.startswith(f"cannot listen on {path}: ")
        assert reason in text
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert _found(folder / "a") == (
        "error",
        f"cannot listen on {folder}/a: this user cannot write its folder",
    )


async def test_a_server_of_ours_there_is_a_warning(folder: Path) -> None:
    path = folder / "a"
    async with serve(settings={"admin": {"socket": str(path)}}):
        level, text = await asyncio.to_thread(_found, path)
    assert (level, text) == (
        "warning",
        f"{path} is that of a broker-core that runs: another one cannot listen there",
    )


def test_another_process_there_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.cli.startup_checks.admin_socket.is_live", lambda _url: False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(folder / "a"))
        other.listen(1)
        level, text = _found(folder / "a")
    assert level == "error"
    assert text.endswith("another process listens there")
