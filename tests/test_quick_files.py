from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import quick_files
from tests.support.quick_files import MEMORY, ROOM, folder_in_memory, keep_files_in_memory


class Machine:
    """What a machine says of itself, in files of the test."""

    def __init__(self, folder: Path) -> None:
        self.shared, self.groups, self.meminfo = folder / "shm", folder / "groups", folder / "meminfo"
        self.shared.mkdir()
        (self.groups / "memory").mkdir(parents=True)
        self.has(MEMORY)

    def has(self, memory: int) -> None:
        self.meminfo.write_text(f"MemFree: 1 kB\nMemAvailable: {memory // 1024} kB\nBuffers: 2 kB\n")

    def limit(self, name: str, text: str) -> None:
        (self.groups / name).write_text(f"{text}\n")

    @property
    def chosen(self) -> Path | None:
        return folder_in_memory(self.shared, meminfo=self.meminfo, groups=self.groups)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    has_room(made, monkeypatch, ROOM)
    return made


def has_room(machine: Machine, monkeypatch: pytest.MonkeyPatch, room: int, flags: int = 0) -> None:
    def statvfs(path: Path) -> SimpleNamespace:
        assert path == machine.shared
        return SimpleNamespace(f_bavail=room // 4096, f_frsize=4096, f_flag=flags)

    monkeypatch.setattr(os, "statvfs", statvfs)


def test_where_there_is_room_files_are_in_memory(machine: Machine) -> None:
    assert machine.chosen == machine.shared
    machine.limit("memory.max", "max")
    machine.limit("memory/memory.limit_in_bytes", "9223372036854771712")
    assert machine.chosen == machine.shared


def test_a_container_has_little_shared_memory(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    has_room(machine, monkeypatch, 64 << 20)
    assert machine.chosen is None


def test_little_memory_is_left_for_programs(machine: Machine) -> None:
    machine.has(MEMORY - 1024)
    assert machine.chosen is None


@pytest.mark.parametrize("name", quick_files.LIMITS)
def test_a_limit_of_the_container_counts(machine: Machine, name: str) -> None:
    machine.limit(name, str(MEMORY - 1))
    assert machine.chosen is None


def test_programs_have_to_run_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    has_room(machine, monkeypatch, ROOM, os.ST_NOEXEC)
    assert machine.chosen is None


def test_a_machine_that_says_nothing_has_none(machine: Machine) -> None:
    machine.meminfo.write_text("MemFree: 1 kB\n")
    assert machine.chosen is None
    machine.meminfo.unlink()
    assert machine.chosen is None


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert folder_in_memory(tmp_path / "none") is None


def test_files_are_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tempfile.gettempdir()
    monkeypatch.setattr(tempfile, "tempdir", before)
    monkeypatch.setattr(quick_files, "folder_in_memory", lambda: tmp_path)
    monkeypatch.setenv("TMPDIR", before)
    keep_files_in_memory()
    assert tempfile.gettempdir() == before
    monkeypatch.delenv("TMPDIR")
    keep_files_in_memory()
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(tmp_path)


def test_where_there_is_no_room_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_files, "folder_in_memory", lambda: None)
    monkeypatch.delenv("TMPDIR", raising=False)
    keep_files_in_memory()
    assert "TMPDIR" not in os.environ
