"""The backup copy of a catalogue before a migration."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from broker_core.catalog.catalog_errors import CatalogError
from broker_core.catalog.store.backup_file import back_up, backups_of, room_for
from tests.catalog.old_files import old_file
from tests.support.forked_programs import forked_program

NAME = "c.sqlite.format-1.backup"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return old_file("format-1-unstamped", tmp_path / "c.sqlite")


def copied(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as source:
        return back_up(path, source, 1)


def content(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            row
            for table in ("meta", "namespaces", "topics", "changes")
            for row in connection.execute(f"SELECT * FROM {table}")
        ]


def test_it_is_the_same_with_the_same_rights(path: Path) -> None:
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 4321, 4322)
    before = path.stat()
    copy = copied(path)
    assert copy == path.with_name(NAME)
    assert content(copy) == content(path)
    after = copy.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


def test_what_is_in_the_log_alone_is_in_the_copy(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE namespaces SET version = version + 100")
        assert path.with_name("c.sqlite-wal").stat().st_size > 0
        assert content(copied(path)) == content(path)


def test_none_is_overwritten(path: Path) -> None:
    first = copied(path)
    assert copied(path) == first, "the same once more is as good"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("UPDATE namespaces SET version = version + 1")
    second = copied(path)
    assert second == path.with_name(f"{NAME}-2")
    assert content(first) != content(second)
    assert backups_of(path, 1) == [first, second]
    assert sorted(each.name for each in path.parent.iterdir() if each.suffix != ".sqlite") == sorted(
        [NAME, f"{NAME}-2"]
    )


def test_a_foreign_file_of_the_name_stays(path: Path) -> None:
    path.with_name(NAME).write_text("mine")
    assert copied(path) == path.with_name(f"{NAME}-2")
    assert path.with_name(NAME).read_text() == "mine"


def test_a_link_leads_to_the_folder_of_the_file(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    link = folder / "link.sqlite"
    link.symlink_to(path)
    assert copied(link) == path.with_name(NAME)
    assert list(folder.iterdir()) == [link]


def test_without_room_nothing_is_made(path: Path) -> None:
    with path.open("rb+") as file:  # which says that it is larger than any disk, and takes no room
        file.truncate(2**43)
    needed, free = room_for(path)
    assert needed > 2**43 > free
    with (
        closing(sqlite3.connect(path)) as source,
        pytest.raises(
            CatalogError, match=r"stays in format 1: the copy of it that is kept needs [\d,]+ bytes"
        ),
    ):
        back_up(path, source, 1)
    assert [each.name for each in path.parent.iterdir()] == ["c.sqlite"]


LIMITED = """
import resource, signal, sqlite3, sys
from pathlib import Path
from broker_core.catalog.store.backup_file import back_up
from broker_core.catalog.catalog_errors import CatalogError

path = Path(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
source = sqlite3.connect(path)
most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, most[1]))
try:
    back_up(path, source, 1)
except CatalogError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, most)
source.close()
"""


def test_a_copy_that_breaks_off_leaves_nothing(path: Path) -> None:
    before = path.read_bytes()
    said = subprocess.run(
        [forked_program("python"), "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    assert "stays in format 1: " in said.stdout
    assert [each.name for each in path.parent.iterdir()] == ["c.sqlite"]
    assert path.read_bytes() == before


UNPRIVILEGED = """
import os, sqlite3, sys
from pathlib import Path
from broker_core.catalog.store.backup_file import back_up
from broker_core.catalog.catalog_errors import CatalogError

path = Path(sys.argv[1])
source = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
os.setgid(65534)
os.setuid(65534)
try:
    back_up(path, source, 1)
except CatalogError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_a_folder_that_cannot_be_written_is_said() -> None:
    with TemporaryDirectory() as folder:  # that anybody may look into, unlike those of pytest
        Path(folder).chmod(0o755)
        path = old_file("format-1-unstamped", Path(folder) / "c.sqlite")
        said = subprocess.run(
            [forked_program("python"), "-c", UNPRIVILEGED, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"no copy of it can be made in {folder} (Permission denied)" in said.stdout, said.stderr
