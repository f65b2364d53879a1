"""A private file has no name, and its map outlives it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.private_file import PrivateFile


def test_a_private_file_has_no_name_and_outlives_its_closing(tmp_path: Path) -> None:
    with PrivateFile(str(tmp_path)) as file:
        file.write([b"ab", np.array([1, 2], "<u4")])
        file.write([np.empty(0, "<u4")])
        assert file.size == 10
        early = file.mapped()
        file.write([b"more"])
        late = file.mapped()
        assert list(tmp_path.iterdir()) == []
    assert early.to_pybytes() == b"ab\1\0\0\0\2\0\0\0"
    assert late.to_pybytes() == early.to_pybytes() + b"more"


def test_a_map_cannot_be_written(tmp_path: Path) -> None:
    with PrivateFile(str(tmp_path)) as file:
        file.write([b"abcd"])
        mapped = np.frombuffer(file.mapped(), "<u4")
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1


def test_nothing_is_mapped_of_an_empty_file() -> None:
    with PrivateFile() as file:
        assert file.mapped().size == 0
        assert np.frombuffer(file.mapped(), "<u4").tolist() == []


def test_a_folder_that_takes_no_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot keep a private copy there"):
        PrivateFile(str(tmp_path / "nothing"))
