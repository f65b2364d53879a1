"""What is removed from the folder: what nobody needs, and the least used over the bound; never what is another's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.snapshots.stored.column_file import ColumnFile, FileReference
from broker_core.snapshots.stored.manifest import SnapshotManifest, manifest_name
from broker_core.snapshots.stored.snapshot_folder import SnapshotFolder
from broker_core.snapshots.stored.sweep import stored_manifests, sweep


@pytest.fixture
def folder(tmp_path: Path) -> SnapshotFolder:
    return SnapshotFolder(tmp_path / "snapshots", left_free=0)


def put_columns(folder: SnapshotFolder, text: bytes) -> FileReference:
    file = ColumnFile({"fields": text * 20_000}, 1, {})
    folder.write(file.reference.name, file.pieces)
    return file.reference


def put(folder: SnapshotFolder, name: str, *texts: bytes, used: float = 0) -> str:
    """A manifest of a namespace with these files."""
    namespace = NamespaceName("t", name)
    manifest = SnapshotManifest(
        rules="", catalog_id="id", namespace=str(namespace), mode="ALL", version=1, stamp="s", property_keys=(),
        nbytes=1, asked=0, files=tuple(put_columns(folder, text) for text in texts),
    )  # fmt: skip
    file = manifest_name(namespace, Mode.ALL, ())
    folder.write(file, [manifest.to_bytes()])
    if used:
        os.utime(folder.path / file, (used, used))
    return file


def namespaces(folder: SnapshotFolder) -> set[str]:
    return {manifest.namespace for manifest in stored_manifests(folder)}


def age(folder: SnapshotFolder, *names: str) -> None:
    for name in names or [file.name for file in folder.files()]:
        os.utime(folder.path / name, (1, 1), follow_symlinks=False)


def test_what_a_manifest_names_stays(folder: SnapshotFolder) -> None:
    put(folder, "a", b"1", b"2")
    age(folder)
    before = {file.name for file in folder.files()}
    assert sweep(folder, 0) == 0
    assert {file.name for file in folder.files()} == before


def test_what_no_manifest_names_goes_after_a_while(folder: SnapshotFolder) -> None:
    put(folder, "a", b"1")
    new, old = put_columns(folder, b"2"), put_columns(folder, b"3")
    (folder.path / ".0123456789abcdef.part").touch()
    (folder.path / ".1123456789abcdef.part").touch()
    age(folder, old.name, ".0123456789abcdef.part")
    assert sweep(folder, 0) == 2
    left = {file.name for file in folder.files()}
    assert new.name in left
    assert ".1123456789abcdef.part" in left
    assert old.name not in left


def test_the_least_used_make_room_and_shared_files_count_once(folder: SnapshotFolder) -> None:
    put(folder, "old", b"1", b"2", used=1000)
    put(folder, "shares", b"3", b"4", used=2000)
    put(folder, "new", b"3", b"4", used=3000)
    sweep(folder, sum(file.size for file in folder.files()) - 1, grace=0)
    assert namespaces(folder) == {"t/shares", "t/new"}
    assert sum(file.name.endswith(".columns") for file in folder.files()) == 2
    sweep(folder, 1, grace=0)
    assert folder.files() == []


def test_what_another_release_wrote_stays_for_some_days(folder: SnapshotFolder) -> None:
    name = put(folder, "a", b"1")
    (folder.path / name).write_bytes(b"broker-core snapshot 99 00000000 0\n")
    assert sweep(folder, 1) == 0
    age(folder, name)
    assert sweep(folder, 1) == 1
    assert name not in {file.name for file in folder.files()}


def test_names_of_others_are_left_alone(folder: SnapshotFolder, tmp_path: Path) -> None:
    put_columns(folder, b"1")
    names = ["notes.txt", "x.columns", "x.manifest", ".hidden.part", "0" * 32, "A" * 32 + ".columns"]
    for name in names:
        (folder.path / name).touch()
    (folder.path / ("0" * 32 + ".columns")).mkdir()
    age(folder)
    sweep(folder, 1, grace=0)
    assert {file.name for file in folder.files()} == {*names, "0" * 32 + ".columns"}


def test_a_link_is_removed_and_not_what_it_leads_to(folder: SnapshotFolder, tmp_path: Path) -> None:
    put_columns(folder, b"1")
    (tmp_path / "precious").write_text("x")
    (folder.path / ("1" * 32 + ".columns")).symlink_to(tmp_path / "precious")
    age(folder)
    sweep(folder, 0)
    assert folder.files() == []
    assert (tmp_path / "precious").read_text() == "x"


def test_no_folder_is_nothing_to_sweep(folder: SnapshotFolder) -> None:
    assert sweep(folder, 1) == 0
    assert stored_manifests(folder) == []


def test_a_copy_of_a_manifest_under_another_name_is_none(folder: SnapshotFolder) -> None:
    name = put(folder, "a", b"1")
    folder.write(f"{'0' * 32}.manifest", [folder.read(name, 10_000)])
    assert [each.name for each in stored_manifests(folder)] == [name]
