"""A manifest is verified by its checksum, the id of the generation."""

from __future__ import annotations

import hashlib

import pytest

from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration, OtherFormatVersion
from broker_core_spark.format.manifest import manifest_name
from broker_core_spark.format.segment_patch import patch_name
from broker_core_spark.store.stored_manifest import files_of, read_manifest
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


@pytest.mark.parametrize("version", [1, 3])
def test_a_generation_of_another_version_is_refused_and_its_files_are_known(version: int) -> None:
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c")
    other = made.data.replace(b'"version":2', f'"version":{version}'.encode())
    name = hashlib.sha256(other).hexdigest()
    store.put_new(manifest_name(name), other)
    with pytest.raises(OtherFormatVersion, match=f"format version {version}: only 2 .* Build the generation"):
        read_manifest(store, name)
    patches = {patch_name(entry.files) for entry in made.segments}
    assert files_of(store, name) | patches == files_of(store, made.id)
    assert files_of(store, name) == {file.name for file in made.files}
