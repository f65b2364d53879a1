"""The embedded catalogue, an SQLite file that the driver reads and stages.

Executors do not see the file, and one transaction must give all names. One thread reads namespace by namespace, others
sort and write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, cycle
from pathlib import Path
from typing import Any, Final

from broker_core.catalog import CatalogError, SqliteCatalog
from broker_core.change_log import CatalogVersion, Gap
from broker_core.names import NamespaceName
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import DOMAIN_ORDER

__all__ = ["EmbeddedSnapshot", "EmbeddedSource", "is_embedded"]

_MAGIC: Final = b"SQLite format 3\x00"
#: Writers beside the reading thread. Each holds a run of names.
_WRITERS: Final = 2


def is_embedded(path: Path) -> bool:
    """Whether a file is an SQLite database, or should be one by its name."""
    if path.is_dir():
        raise InvalidCatalogue(f"The catalogue {path} is a folder")
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC or path.suffix in (".sqlite", ".db")
    except OSError as error:
        raise InvalidCatalogue(f"Cannot read the catalogue {path}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class EmbeddedSource(CatalogueSource):
    """The broker's own catalogue, read in one transaction."""

    static = False
    path: Path

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The committed state."""
        try:
            with SqliteCatalog(self.path, create=False) as catalog, catalog.state() as state:
                yield EmbeddedSnapshot(
                    state,
                    catalogue_id=state.catalog_id,
                    versions={str(name): version for name, version in state.versions.items()},
                )
        except CatalogError as error:
            raise InvalidCatalogue(str(error)) from error


@dataclass
class EmbeddedSnapshot(CatalogueSnapshot):
    """The state of an embedded catalogue in one transaction."""

    state: Any

    def read(self, staging: StagingArea) -> list[SortedRun]:
        places = [
            (namespace, domain)
            for namespace in self.state.versions
            if staging.namespaces is None or str(namespace) in staging.namespaces
            for domain in DOMAIN_ORDER
        ]
        writers = [SortedRunWriter(staging) for _ in range(_WRITERS)]
        with ThreadPoolExecutor(_WRITERS) as pool:
            pending: deque[Future[None]] = deque()
            for (namespace, domain), writer in zip(places, cycle(writers), strict=False):
                loaded = self.state.names(namespace, domain, staging.property_keys)
                values = [loaded.properties[key] for key in staging.property_keys]
                # One piece of work a writer bounds the reading ahead.
                if len(pending) == _WRITERS:
                    pending.popleft().result()
                pending.append(pool.submit(writer.add, str(namespace), domain, loaded.names, values))
            for future in pending:
                future.result()
            return list(chain.from_iterable(pool.map(SortedRunWriter.finish, writers)))

    def changes_of(self, namespace: str, since: CatalogVersion) -> Iterable[tuple[str, str]] | None:
        found = self.state.changes(NamespaceName.parse(namespace), since)
        if isinstance(found, Gap):
            return None
        return {
            (change.name.domain, name)
            for change in found
            for listed in (change.listed_before, change.listed_after)
            for name in listed.names(change.name.local)
        }
