"""A file at a path or in a bucket: read and replaced whole, and asked beforehand whether it can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store.file_at_address import AddressedFile, addressed_file


@pytest.fixture(params=["path", "file", "memory", "s3"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> AddressedFile:
    match request.param:
        case "path":
            return addressed_file(str(tmp_path / "a file.html"))
        case "file":
            return addressed_file((tmp_path / "a file.html").as_uri())
        case "memory":
            return addressed_file(f"memory://{tmp_path.name}/a file.html")
    options = request.getfixturevalue("s3_options")
    return addressed_file(f"s3://generations/{tmp_path.name}/a file.html", options)


def test_it_is_replaced_and_read_whole(file: AddressedFile) -> None:
    with pytest.raises(StoreFailed, match=r"a.*file\.html: cannot read it"):
        file.check_readable()
    with pytest.raises(StoreFailed, match="cannot read it: "):
        file.read(9)
    file.check_writable()
    with pytest.raises(StoreFailed, match="cannot read it"):  # the check has made no file
        file.check_readable()
    file.write(b"first")
    file.check_writable()
    file.check_readable()
    assert file.read(5) == b"first"
    file.write(b"second")
    assert file.read(9) == b"second"
    with pytest.raises(StoreFailed, match="more than 5 bytes"):
        file.read(5)


def test_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = addressed_file(str(tmp_path / "x"))
    file.check_writable()
    assert list(tmp_path.iterdir()) == []
    file.write(b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    (tmp_path / "folder").mkdir()
    for address in (tmp_path / "none" / "x", tmp_path / "folder"):
        with pytest.raises(StoreFailed, match="cannot write it"):
            addressed_file(str(address)).check_writable()
        with pytest.raises(StoreFailed, match="cannot write it"):
            addressed_file(str(address)).write(b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "x"]


def test_nobody_opens_a_pipe_to_ask_whether_it_can_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    addressed_file(str(tmp_path / "pipe")).check_readable()  # opening it would wait for somebody who writes
    with pytest.raises(StoreFailed, match="cannot read it"):
        addressed_file(str(tmp_path)).check_readable()


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    file = addressed_file(str(tmp_path / "pipe"))
    file.check_writable()
    file.write(b"page")
    assert os.read(reader, 9) == b"page"
    os.close(reader)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("ftp://host/x", "ftp:// is no place for a file"),
        ("s3://bucket", "names no file"),
        ("s3://bucket/", "names no file"),
        ("s3:///x", "names no file"),
        ("file://host/x", "no host"),
        ("s3://" + "key:secret" + "@bucket/x", "not part of the address"),
    ],
)
def test_an_address_that_names_no_file(address: str, message: str) -> None:
    with pytest.raises(StoreFailed, match=message) as raised:
        addressed_file(address)
    assert "secret" not in str(raised.value)


def test_a_bucket_that_is_not_there_is_said_beforehand(s3_options: dict[str, str]) -> None:
    file = addressed_file("s3://no-such-bucket/x", s3_options)
    with pytest.raises(StoreFailed, match=r"s3://no-such-bucket/x: cannot write it: "):
        file.check_writable()
