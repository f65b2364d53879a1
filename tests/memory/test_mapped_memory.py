"""Read-only memory-mapped files are recognized by the kernel's word, not by Arrow's."""

from __future__ import annotations

import mmap
from pathlib import Path

import pyarrow as pa
import pytest

from broker_core.memory import mapped_memory
from broker_core.memory.mapped_memory import map_of
from tests.support.mapped import mapped


def test_a_file_that_is_mapped_read_only_is_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    # Else the maps of other tests may fill it, and it is emptied.
    monkeypatch.setattr(mapped_memory, "_known", {})
    buffer = mapped(bytes(3 * mmap.PAGESIZE))
    found = map_of(buffer)
    assert found is not None
    assert not found.has_name
    assert map_of(buffer.slice(5, 100)) is not None
    assert map_of(buffer) is found  # which is not asked again


def test_a_file_with_a_name_says_so(tmp_path: Path) -> None:
    path = tmp_path / "two words"
    path.write_bytes(b"names")
    with pa.memory_map(str(path)) as file:
        buffer = file.read_buffer()
    found = map_of(buffer)
    assert found is not None
    assert (found.path, found.has_name) == (str(path), True)


@pytest.mark.parametrize(
    "buffer",
    [
        pa.py_buffer(b"bytes" * 1000),
        pa.py_buffer(memoryview(bytearray(b"bytes" * 100_000)).toreadonly()),
        pa.py_buffer(mmap.mmap(-1, 100)),
        pa.py_buffer(memoryview(mmap.mmap(-1, 100)).toreadonly()),
        pa.py_buffer(b""),
        pa.array(range(1000)).buffers()[1],
    ],
    ids=["bytes", "a view", "anonymous", "a view of anonymous", "nothing", "Arrow's"],
)
def test_other_memory_is_none(buffer: pa.Buffer) -> None:
    assert map_of(buffer) is None


def test_a_file_that_is_mapped_for_writing_is_none(tmp_path: Path) -> None:
    path = tmp_path / "names"
    path.write_bytes(b"names")
    with path.open("r+b") as file:
        writable = mmap.mmap(file.fileno(), 5)
    assert map_of(pa.py_buffer(memoryview(writable).toreadonly())) is None
