"""A folder at a path or in a bucket: files are written whole, listed at any depth, and removed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.addressed_folder import AddressedFolder, addressed_folder


@pytest.fixture(params=["path", "file", "memory", "s3"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> AddressedFolder:
    match request.param:
        case "path":
            return addressed_folder(f"{tmp_path}/a folder/")
        case "file":
            return addressed_folder((tmp_path / "a folder").as_uri())
        case "memory":
            return addressed_folder(f"memory://{tmp_path.name}")
    options = request.getfixturevalue("s3_options")
    return addressed_folder(f"s3://generations/{tmp_path.name}/a folder", options)


def test_files_are_written_listed_and_removed(folder: AddressedFolder) -> None:
    assert folder.files() == []
    folder.check_writable()
    assert folder.files() == []
    folder.write("top", b"1")
    folder.write("n=1/part", b"22")
    folder.write("n=1/part", b"333")
    folder.write("n=10/part", b"4")
    assert {found.path: found.size for found in folder.files()} == {"top": 1, "n=1/part": 3, "n=10/part": 1}
    assert all(datetime.now(UTC) - found.modified < timedelta(minutes=5) for found in folder.files())
    folder.remove(["n=1/part", "n=1/none", "top"])
    assert [found.path for found in folder.files()] == ["n=10/part"]


def test_folders_that_are_empty_go(tmp_path: Path) -> None:
    folder = addressed_folder(str(tmp_path / "x"))
    for path in ("n=1/a", "n=2/a", "n=2/b"):
        folder.write(path, b"")
    folder.remove(["n=1/a", "n=2/a"])
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["n=2"]
    folder.remove(["n=2/b"])
    assert list(tmp_path.iterdir()) == []
    folder.remove(["n=2/b"])


def test_what_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for address in (str(tmp_path / "file"), str(tmp_path / "file" / "below")):
        with pytest.raises(StoreFailed, match="cannot make the folder"):
            addressed_folder(address).check_writable()
        with pytest.raises(StoreFailed, match="cannot make the folder"):
            addressed_folder(address).write("a", b"")
    with pytest.raises(StoreFailed, match="hdfs:// is no place for files"):
        addressed_folder("hdfs://host/x")
