from __future__ import annotations

from pathlib import Path

from broker_core import Check
from broker_core_spark.check_store import check_store
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.support.generation_builder import build_generation


def found(store: object, *, folder: Path | None = None) -> list[tuple[str, str]]:
    return [(check.level, check.name) for check in checks(store, folder=folder)]


def checks(store: object, *, folder: Path | None = None) -> list[Check]:
    return list(check_store(SparkSettings(store=str(store), folder=folder)))


def test_a_store_without_a_generation_is_a_warning_and_is_not_made(tmp_path: Path) -> None:
    assert found(tmp_path / "absent") == [("warning", "store")]
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_none(tmp_path: Path) -> None:
    assert found("ftp://x") == [("error", "store")]


def test_what_is_published(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        manifest = build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="one")
        build.publish(manifest)
    before = sorted(tmp_path.rglob("*"))
    assert found(tmp_path)[:2] == [("ok", "store"), ("ok", "generation")]
    assert "0 questions, 1 topic" in checks(tmp_path)[1].text
    assert found(tmp_path, folder=tmp_path / "absent")[-1] == ("error", "folder")
    assert sorted(tmp_path.rglob("*")) == before
    manifest_file = tmp_path / "manifests" / f"{manifest.id}.json"
    manifest_file.chmod(0o644)
    manifest_file.write_bytes(b"{}")
    assert found(tmp_path) == [("ok", "store"), ("error", "generation")]


def test_a_catalogue_without_versions_must_be_declared(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        build.publish(build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="one"))
    assert found(tmp_path)[-1] == ("warning", "generation")
    assert "static = true" in checks(tmp_path)[-1].text
    assert all(check.level == "ok" for check in check_store(SparkSettings(store=str(tmp_path), static=True)))


def test_a_pointer_that_cannot_be_read(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        manifest = build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="one")
        build.publish(manifest)
    (pointer,) = (tmp_path / "pointers").iterdir()
    pointer.chmod(0o644)
    pointer.write_bytes(b"x")
    (check,) = checks(tmp_path)
    assert check.level == "error"
    assert "it is no pointer to a generation" in check.text
