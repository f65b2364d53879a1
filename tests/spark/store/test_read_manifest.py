"""A manifest is verified by its checksum, the id of the generation."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration
from broker_core_spark.format.manifest import manifest_name
from broker_core_spark.store import open_store
from broker_core_spark.store.read_manifest import read_manifest
from tests.support.generation_builder import build_generation
from tests.support.generations import CATALOGUE, QUESTIONS, memory


def test_the_manifest_that_was_written_is_read() -> None:
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c")
    assert read_manifest(store, made.id).data == made.data


def test_a_generation_that_is_not_there_is_told_apart_from_a_changed_one() -> None:
    store = memory()
    with pytest.raises(NoSuchGeneration, match="there is no generation aaaaaaaaaaaa"):
        read_manifest(store, "a" * 64)
    store.put_new(manifest_name("a" * 64), b"{}")
    with pytest.raises(InvalidGeneration, match="checksum"):
        read_manifest(store, "a" * 64)


def test_a_generation_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    made = build_generation(open_store(str(tmp_path)), CATALOGUE, QUESTIONS, catalogue_id="c")
    newer = made.data.replace(b'"version":1', b'"version":2')
    name = hashlib.sha256(newer).hexdigest()
    (tmp_path / manifest_name(name)).write_bytes(newer)
    with pytest.raises(InvalidGeneration, match="format version 2"):
        read_manifest(open_store(str(tmp_path)), name)
