"""A catalogue that can only be read: on a read-only mount, or of another user. What is read is never old."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from broker_core.broker import Broker
from broker_core.catalog import CatalogBusy, CatalogReadOnly, SqliteCatalog
from broker_core.client import LookupSession
from broker_core.names import NamespaceName, TopicName
from broker_core.settings import Settings
from tests.support.catalogue_topics import create_topics
from tests.support.forked_programs import forked_program
from tests.support.read_only_folder import mounted_read_only

SPACE = NamespaceName("a", "b")


def _name(number: int) -> TopicName:
    return TopicName.parse(f"persistent://a/b/t{number}")


def _count(catalog: SqliteCatalog) -> int:
    with catalog.state() as state:
        return len(state.names(SPACE, "persistent").names) if SPACE in state.versions else 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_topics(tmp_path / "c.sqlite", _name(0))
    return tmp_path / "c.sqlite"


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    with mounted_read_only(path.parent) as folder:
        yield folder / path.name


def test_it_is_read_and_nothing_is_made_beside_it(path: Path, read_only: Path) -> None:
    before = path.read_bytes()
    for create in (False, True):
        with SqliteCatalog(read_only, create=create) as catalog:
            assert not catalog.is_writable
            assert _count(catalog) == 1
            assert catalog.topic(_name(0)) is not None
            with pytest.raises(CatalogReadOnly, match="cannot be written"):
                catalog.create(_name(1))
            with pytest.raises(CatalogReadOnly, match="cannot be written"):
                catalog.delete(_name(0))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_what_a_writer_commits_is_seen_whenever_it_comes_and_goes(path: Path, read_only: Path) -> None:
    """The log of a writer is there while it is open, with or without changes, and goes with it."""
    chance = random.Random(32)
    count = 1
    writers: list[SqliteCatalog] = []
    with SqliteCatalog(read_only, create=False) as catalog:
        for _ in range(100):
            what = chance.random()
            if not writers or what < 0.2:
                writers.append(SqliteCatalog(path))
            elif what < 0.5:
                writers.pop(chance.randrange(len(writers))).close()
            else:
                chance.choice(writers).create(_name(count))
                count += 1
            assert _count(catalog) == count
            assert catalog.version(SPACE).number == count
    for writer in writers:
        writer.close()


def test_a_read_that_a_writer_wrote_into_fails(path: Path, read_only: Path) -> None:
    with SqliteCatalog(read_only, create=False) as catalog:
        with (
            pytest.raises(CatalogBusy, match="was written while it was read"),
            catalog.reading(),
            SqliteCatalog(path) as writer,
        ):
            writer.create(_name(1))  # which is in the file itself when it is closed
        assert _count(catalog) == 2
        with catalog.reading() as connection:
            writer = SqliteCatalog(path)
            writer.create(_name(2))  # which is in its log
            (topics,) = connection.execute("SELECT count(*) FROM topics").fetchone()
        assert topics == 2, "as of the begin of the read"
        assert _count(catalog) == 3
        writer.close()


def test_no_answer_is_older_than_what_was_committed_before_it_was_asked(path: Path, read_only: Path) -> None:
    committed = [1]
    over = threading.Event()

    def write() -> None:
        for number in range(1, 60):
            with SqliteCatalog(path) as writer:
                writer.create(_name(number))
                committed.append(number + 1)
        over.set()

    answers = 0
    thread = threading.Thread(target=write)
    thread.start()
    try:
        with SqliteCatalog(read_only, create=False, busy_timeout=5) as catalog:
            while not over.is_set() or not answers:  # all may be busy until the last writer has gone
                known = committed[-1]
                try:
                    found = _count(catalog)
                except CatalogBusy:
                    continue
                answers += 1
                assert known <= found <= committed[-1] + 1
            assert _count(catalog) == 60
    finally:
        thread.join()


async def test_a_server_serves_it_and_what_another_one_writes(path: Path, read_only: Path) -> None:
    settings = Settings.model_validate({"pulsar": {"listen": "127.0.0.1:0"}, "catalog": {"path": read_only}})
    async with Broker(settings) as broker:
        host, port = broker.pulsar_address
        async with LookupSession(f"pulsar://{host}:{port}") as client:
            for count in range(1, 10):
                for _ in range(3):  # the last ones from memory
                    assert len((await client.get_topics("a/b")).topics) == count
                create_topics(path, _name(count))
            with SqliteCatalog(path) as writer:
                for count in range(10, 20):
                    assert len((await client.get_topics("a/b")).topics) == count
                    writer.create(_name(count))
    with SqliteCatalog(read_only, create=False) as catalog:
        assert _count(catalog) == 20


_OF_ANOTHER_USER = """
import os, sys
from broker_core.cli.command_tree import run
from broker_core.catalog import SqliteCatalog

path = sys.argv[1]
for words in (["topics", "show", "--catalog", path, "a/b/t0"], ["check"]):
    run(words)  # with all that is imported for it
os.environ["BROKER_CORE_CATALOG__PATH"] = path
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print("--")
for words in (
    ["topics", "show", "--catalog", path, "a/b/t0"],
    ["topics", "export", "--catalog", path, "a/b"],
    ["check"],
    ["topics", "create", "--catalog", path, "a/b/new"],
):
    print(words[:2], run(words))
"""


@pytest.mark.parametrize("folder_mode", [0o755, 0o777])
def test_commands_read_that_of_another_user(folder_mode: int) -> None:
    with TemporaryDirectory() as folder:  # that anybody may look into, unlike those of pytest
        path = Path(folder) / "c.sqlite"
        with SqliteCatalog(path, mode=0o644) as catalog:
            catalog.create(_name(0))
        path.chmod(0o444)
        Path(folder).chmod(folder_mode if os.geteuid() == 0 else 0o555)
        said = subprocess.run(
            [forked_program("python"), "-c", _OF_ANOTHER_USER, str(path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        _, _, out = said.stdout.partition("--\n")
        assert "['topics', 'show'] 0" in out, said.stderr
        assert "['topics', 'export'] 0" in out, said.stderr
        assert "1 topic" in out
        assert "1 topic, listed" in out
        assert "['topics', 'create'] 1" in out
        assert "cannot be written" in said.stderr
        assert [each.name for each in Path(folder).iterdir()] == ["c.sqlite"]
        Path(folder).chmod(0o755)
