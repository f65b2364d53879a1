"""Reading the manifest of a generation from its store."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration, OtherFormatVersion
from broker_core_spark.format import MANIFEST_LIMIT, Manifest, manifest_name, patch_name
from broker_core_spark.store.store import Store

__all__ = ["files_of", "read_manifest"]


#: A file of a generation, as the manifests of all versions of the format name it.
_NAMED: Final = re.compile(rb'"([a-z]+/[0-9a-f]{64}\.[a-z]+)"')


def read_manifest(store: Store, generation: str) -> Manifest:
    """The manifest of the generation with this id. Raises :exc:`NoSuchGeneration` and :exc:`InvalidGeneration`."""
    return Manifest.parse(_data(store, generation), manifest_name(generation))


def files_of(store: Store, generation: str) -> set[str]:
    """The names of a generation's files, and of patches that make them, without its manifest.

    Also for a generation with another version of the format, without patches.

    Raises :exc:`NoSuchGeneration` and :exc:`InvalidGeneration`.
    """
    data = _data(store, generation)
    try:
        manifest = Manifest.parse(data, manifest_name(generation))
        return {
            *(file.name for file in manifest.files),
            *(patch_name(one.files) for one in manifest.segments),
        }
    except OtherFormatVersion:
        return {name.decode() for name in _NAMED.findall(data)}


def _data(store: Store, generation: str) -> bytes:
    name = manifest_name(generation)
    data = store.get(name, MANIFEST_LIMIT)
    if data is None:
        raise NoSuchGeneration(f"{store.uri}: there is no generation {generation[:12]}")
    if hashlib.sha256(data).hexdigest() != generation:
        raise InvalidGeneration(name, "its checksum is not the one that its name has: it was changed or cut")
    return data
