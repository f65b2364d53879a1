"""Stored snapshots: what is read is what was written, all of it, or nothing."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from structlog.testing import capture_logs

from broker_core.change_log import CatalogVersion
from broker_core.listing.chunks.build_chunks import build_chunks
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots.stored import stored_snapshots
from broker_core.snapshots.stored.chunk_columns import file_of
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder
from broker_core.snapshots.stored.stored_snapshots import LEAST_TOPICS, Pace, Stored, StoredSnapshots
from tests.support.narrowed import present
from tests.support.small_disk import grow, small_disk

NAMESPACE = NamespaceName("t", "n")
VERSION = CatalogVersion("id", 7, "stamp")


def stored_of(topics: int = 100_000, namespace: NamespaceName = NAMESPACE, *, asked: int = 3) -> Stored:
    numbers = pc.utf8_lpad(pa.array(np.arange(topics)).cast(pa.string()), 30, "0")
    chunks = tuple(build_chunks(namespace, numbers.cast(pa.large_string()), None))
    nbytes = sum(chunk.nbytes for chunk in chunks)
    return Stored(namespace, Mode.PERSISTENT, VERSION, chunks, nbytes, asked)


@pytest.fixture(scope="module")
def some() -> Stored:
    return stored_of()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "topics.db.snapshots"


@pytest.fixture
def opened(path: Path) -> Callable[..., StoredSnapshots]:
    """Another process that has the folder open."""
    return lambda **options: StoredSnapshots(SnapshotFolder(path, left_free=0), **options)


Opened = Callable[..., StoredSnapshots]


def read(stored: StoredSnapshots, namespace: NamespaceName = NAMESPACE) -> list[str] | None:
    manifest = stored.find(namespace, Mode.PERSISTENT, "id")
    chunks = None if manifest is None else stored.read(manifest)
    if chunks is None:
        return None
    return [name for chunk in chunks for name in chunk.names(0, chunk.size).to_pylist()]


def names_of(stored: Stored) -> list[str]:
    return [name for chunk in stored.chunks for name in chunk.names(0, chunk.size).to_pylist()]


def test_what_is_written_is_read_by_others(opened: Opened, some: Stored) -> None:
    assert len(some.chunks) > 2
    writer, reader = opened(), opened()
    assert writer.write(some)
    manifest = present(reader.find(NAMESPACE, Mode.PERSISTENT, "id"))
    assert manifest.catalog_version.same_state(VERSION)
    assert manifest.nbytes == some.nbytes
    assert read(reader) == names_of(some)
    assert reader.counts.read()["read"] == 1
    assert writer.counts.read()["written"] == 1


def test_only_new_chunks_are_written(opened: Opened, some: Stored, path: Path) -> None:
    one, two = opened(), opened()
    assert one.write(some)
    assert one.write(some) == 0
    assert two.write(some) == 0  # of another process
    fewer = replace(some, chunks=some.chunks[:-1])
    assert one.write(fewer) == 0
    assert read(opened()) == names_of(fewer)
    (path / next(iter(one._files.values())).name).unlink()
    assert one.write(some)
    assert read(opened()) == names_of(some)


def test_nothing_is_found_where_nothing_was_written(opened: Opened, some: Stored) -> None:
    stored = opened()
    assert read(stored) is None
    stored.write(some)
    assert stored.find(NAMESPACE, Mode.ALL, "id") is None
    assert stored.find(NamespaceName("t", "m"), Mode.PERSISTENT, "id") is None
    assert stored.counts.read()["refused"] == 0


@pytest.mark.parametrize(("options", "catalog_id"), [({}, "other"), ({"property_keys": ("region",)}, "id")])
def test_what_is_of_another_catalogue_or_selects_otherwise_is_not_used(
    opened: Opened, some: Stored, options: dict[str, tuple[str, ...]], catalog_id: str
) -> None:
    opened().write(some)
    other = opened(**options)
    assert other.find(NAMESPACE, Mode.PERSISTENT, catalog_id) is None
    assert other.most_frequent(catalog_id) == []
    assert other.counts.read()["refused"] == 0


def test_names_that_other_rules_shaped_are_not_used(
    opened: Opened, some: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().write(some)
    monkeypatch.setattr("broker_core.names.system_topics.SYSTEM_LOCAL_SUFFIX", "__other")
    assert read(opened()) is None


def test_a_manifest_under_another_namespaces_name_is_refused(
    opened: Opened, some: Stored, path: Path
) -> None:
    other = NamespaceName("t", "m")
    opened().write(some)
    opened().write(stored_of(LEAST_TOPICS, other))
    one, two = (opened().find(each, Mode.PERSISTENT, "id") for each in (NAMESPACE, other))
    assert one is not None
    assert two is not None
    (path / one.name).replace(path / two.name)
    with capture_logs() as logs:
        stored = opened()
        assert stored.find(other, Mode.PERSISTENT, "id") is None
    assert [(line["log_level"], line["namespace"]) for line in logs] == [("warning", "t/m")]
    assert stored.counts.read()["refused"] == 1
    assert not (path / two.name).exists()


def test_a_damaged_chunk_is_refused_and_written_again(opened: Opened, some: Stored, path: Path) -> None:
    stored = opened()
    stored.write(some)
    name = stored._files[some.chunks[1]].name
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (path / name).write_bytes(content)
    with capture_logs() as logs:
        assert read(opened()) is None
    assert len(logs) == 1
    assert name in logs[0]["reason"]
    assert not (path / name).exists()
    stored.write(some)
    assert read(opened()) == names_of(some)


def test_of_several_damaged_chunks_none_is_left(opened: Opened, some: Stored, path: Path) -> None:
    opened().write(some)
    files = sorted(path.glob("*.columns"))
    assert len(files) == len(some.chunks) > 2
    for file in files[1:]:
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    with capture_logs() as logs:
        assert read(opened()) is None
    assert len(logs) == 1
    assert list(path.iterdir()) == files[:1]
    opened().write(some)
    assert read(opened()) == names_of(some)


def test_a_chunk_for_which_no_descriptor_is_left_is_kept(
    opened: Opened, some: Stored, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_descriptor(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    opened().write(some)
    files = sorted(path.iterdir())
    stored = opened()
    manifest = present(stored.find(NAMESPACE, Mode.PERSISTENT, "id"))
    with monkeypatch.context() as patched:
        patched.setattr(SnapshotFolder, "read", no_descriptor)
        assert stored.read(manifest) is None
    assert sorted(path.iterdir()) == files
    assert read(stored) == names_of(some)


def test_chunks_in_another_order_are_refused(opened: Opened, some: Stored) -> None:
    opened().write(replace(some, chunks=some.chunks[::-1]))
    assert read(opened()) is None


def test_chunks_of_a_domain_that_the_mode_does_not_list_are_refused(opened: Opened, some: Stored) -> None:
    opened().write(replace(some, mode=Mode.NON_PERSISTENT))
    stored = opened()
    manifest = present(stored.find(NAMESPACE, Mode.NON_PERSISTENT, "id"))
    assert stored.read(manifest) is None


def test_a_stale_one_is_removed(opened: Opened, some: Stored) -> None:
    stored = opened()
    stored.write(some)
    manifest = present(stored.find(NAMESPACE, Mode.PERSISTENT, "id"))
    stored.stale(manifest)
    assert read(opened()) is None


def test_the_most_asked_come_first_and_old_counts_fade(opened: Opened) -> None:
    stored = opened()
    names = [NamespaceName("t", name) for name in "abc"]
    for asked, name in zip((5, 100, 7), names, strict=True):
        stored.write(stored_of(LEAST_TOPICS, name, asked=asked))

    def order(stored: StoredSnapshots) -> list[tuple[str, int]]:
        return [(manifest.namespace, manifest.asked) for manifest in stored.most_frequent("id")]

    assert order(opened()) == [("t/b", 100), ("t/c", 7), ("t/a", 5)]
    next_start = opened()
    for name in names:
        assert read(next_start, name) is not None
        next_start.write(stored_of(LEAST_TOPICS, name, asked=60 if name.namespace == "a" else 0))
    assert order(opened()) == [("t/a", 62), ("t/b", 50), ("t/c", 3)]


@pytest.mark.parametrize(
    ("topics", "stamp", "worth"),
    [(LEAST_TOPICS, "s", True), (LEAST_TOPICS - 1, "s", False), (LEAST_TOPICS, "", False)],
)
def test_a_small_one_or_one_without_a_stamp_is_not_worth_it(topics: int, stamp: str, worth: bool) -> None:
    assert replace(stored_of(topics), version=CatalogVersion("id", 7, stamp)).is_worth_it is worth


def test_a_write_that_fails_is_told_once_until_one_works(
    opened: Opened, some: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = opened()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with capture_logs() as logs:
        with monkeypatch.context() as patch:
            patch.setattr(SnapshotFolder, "write", full)
            assert [stored.write(some) for _ in range(3)] == [None] * 3
        assert stored.write(some)
    assert [line["event"] for line in logs] == [
        "snapshots cannot be stored: the next starts may be slow",
        "snapshots are stored again",
    ]
    assert logs[0]["reason"] == "No space left on device"
    assert stored.counts.read()["write_failed"] == 3


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """No file of this process may have more bytes: a write of more ends in the midst."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def written_in_the_midst(stored: StoredSnapshots, some: Stored, path: Path, reason: str) -> None:
    """Two writes of what there is no room for leave whole files alone, and what was stored before."""
    former = {file.name for file in path.iterdir()}
    with capture_logs() as logs:
        assert [stored.write(some), stored.write(some)] == [None, None]
    assert [line["event"] for line in logs] == ["snapshots cannot be stored: the next starts may be slow"]
    assert reason in logs[0]["reason"]
    left = {file.name: file.stat().st_size for file in path.iterdir()}
    made = {file.name: file.size for file in (file_of(chunk, ()).reference for chunk in some.chunks)}
    assert {name: made[name] for name in left.keys() - former} == {
        name: size for name, size in left.items() if name not in former
    }, "none is torn"
    assert 0 < len(left.keys() & made.keys()) < len(made), "the writing had begun"


def stored_again(stored: StoredSnapshots, some: Stored) -> None:
    with capture_logs() as logs:
        assert stored.write(some)
    assert [line["event"] for line in logs] == ["snapshots are stored again"]


def test_a_disk_that_fills_in_the_midst_leaves_what_was_stored(path: Path, some: Stored) -> None:
    size = file_of(some.chunks[0], ()).reference.size
    with small_disk(path, f"{5 * size // 2048}k"):
        # As if others filled it while a file is written: the room that is there is not asked for.
        stored = StoredSnapshots(SnapshotFolder(path, left_free=-(2**40)))
        before = stored_of(1000)
        assert stored.write(before)
        written_in_the_midst(stored, some, path, "No space left on device")
        assert read(StoredSnapshots(SnapshotFolder(path))) == names_of(before)
        grow(path, "64m")
        stored_again(stored, some)
        assert read(StoredSnapshots(SnapshotFolder(path))) == names_of(some)


def test_a_file_that_cannot_be_written_to_its_end_leaves_what_was_stored(opened: Opened, path: Path) -> None:
    stored, some = opened(), stored_of()
    some = replace(some, chunks=stored_of(1000).chunks + some.chunks[1:])  # a small one, and large ones
    before = stored_of(500)
    assert stored.write(before)
    with small_files(200_000):
        written_in_the_midst(stored, some, path, "File too large")
    assert read(opened()) == names_of(before)
    stored_again(stored, some)
    assert read(opened()) == names_of(some)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_only_be_read_is_read(opened: Opened, some: Stored, path: Path) -> None:
    opened().write(some)
    path.chmod(0o500)
    stored = opened()
    assert read(stored) == names_of(some)
    assert stored.write(replace(some, chunks=some.chunks[1:])) is not None
    path.chmod(0o700)


def test_a_write_that_shall_end_leaves_what_was_stored(opened: Opened, some: Stored) -> None:
    opened().write(replace(some, chunks=some.chunks[:2]))
    assert opened().write(some, pace=lambda: Pace.ENDED) is None
    assert read(opened()) == names_of(replace(some, chunks=some.chunks[:2]))


def test_a_manifest_of_much_that_is_not_there_takes_no_memory(
    opened: Opened, some: Stored, path: Path
) -> None:
    opened().write(some)
    (manifest,) = opened().most_frequent("id")
    large = manifest.files[0].model_copy(update={"size": 2**27, "rows": 2**40})
    lies = manifest.model_copy(update={"files": (large,) * 1000})
    (path / manifest.name).write_bytes(lies.to_bytes())
    assert read(opened()) is None


def test_what_is_over_the_bound_is_swept(opened: Opened) -> None:
    opened().write(stored_of(LEAST_TOPICS))
    stored = opened(limit=1)
    stored.sweep()
    assert stored.counts.read()["removed"] == 1
    assert read(opened()) is None


def test_what_is_larger_than_the_bound_is_not_written_and_told_once(
    opened: Opened, some: Stored, path: Path
) -> None:
    stored = opened(limit=some.chunks[0].column_bytes)
    with capture_logs() as logs:
        assert [stored.write(some) for _ in range(3)] == [None] * 3
    assert [line["log_level"] for line in logs] == ["warning"]
    assert not path.exists()
    assert stored.write(replace(some, chunks=some.chunks[:1]))


def test_readers_have_a_bound() -> None:
    assert 1 <= stored_snapshots._READERS <= 4
