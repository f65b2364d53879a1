"""Checks of ``broker-core check``: the store can be read, and the published generation has its manifest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from broker_core import Check
from broker_core.errors import BrokerCoreError
from broker_core.quantities import counted
from broker_core_spark.serving import UNDECLARED_STATIC
from broker_core_spark.settings import SparkSettings

__all__ = ["check_store"]


def check_store(settings: SparkSettings) -> Iterator[Check]:
    """Findings about the store, the manifest and the folder. The generation itself is not read: it may be large."""
    from broker_core_spark.store import current_pointer, open_store, read_manifest

    try:
        store = open_store(settings.store, settings.store_options)
        published = current_pointer(store)
    except (BrokerCoreError, OSError) as error:
        yield Check.error("store", str(error))
        return
    if published is None:
        yield Check.warning(
            "store",
            f"{store.uri} has no generation yet: all questions pass until broker-core spark build made one",
        )
        return
    yield Check.ok("store", f"{store.uri} can be read")
    try:
        manifest = read_manifest(store, published.generation)
    except (BrokerCoreError, OSError) as error:
        yield Check.error("generation", str(error))
        return
    hours = (datetime.now(UTC) - published.when).total_seconds() / 3600
    yield Check.ok(
        "generation",
        f"{published.generation[:12]} of {max(0.0, hours):.1f} hours ago: "
        f"{counted(manifest.question_count, 'question')}, " + counted(manifest.topics, "topic"),
    )
    if manifest.static and not settings.serves_as_built:
        yield Check.warning("generation", UNDECLARED_STATIC)
    if settings.folder is not None and not settings.folder.is_dir():
        yield Check.error("folder", f"there is no folder {settings.folder}")
