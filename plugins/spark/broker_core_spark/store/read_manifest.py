"""Reading the manifest of a generation from its store."""

from __future__ import annotations

import hashlib

from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration
from broker_core_spark.format.manifest import MANIFEST_LIMIT, Manifest, manifest_name
from broker_core_spark.store.store import Store

__all__ = ["read_manifest"]


def read_manifest(store: Store, generation: str) -> Manifest:
    """The manifest of the generation with this id. Raises :exc:`NoSuchGeneration` and :exc:`InvalidGeneration`."""
    name = manifest_name(generation)
    data = store.get(name, MANIFEST_LIMIT)
    if data is None:
        raise NoSuchGeneration(f"{store.uri}: there is no generation {generation[:12]}")
    if hashlib.sha256(data).hexdigest() != generation:
        raise InvalidGeneration(name, "its checksum is not the one that its name has: it was changed or cut")
    return Manifest.parse(data, name)
