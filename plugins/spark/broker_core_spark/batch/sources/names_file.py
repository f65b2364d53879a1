"""A file of names as a catalogue: imported into a temporary embedded catalogue."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker_core.catalog import CatalogError, SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID, CatalogueSnapshot, CatalogueSource
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSnapshot

__all__ = ["NamesSource"]


class NamesSource(CatalogueSource):
    """A static catalogue: a file of names, one a line, or of JSON lines with properties.

    The rules are as in ``broker-core topics import``. Errors name it by ``shown``, its path by default.
    """

    def __init__(self, path: Path, namespace: str, *, shown: str | None = None) -> None:
        self._path = path
        self._shown = shown or str(path)
        self._namespace = NamespaceName.parse(namespace)

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The names that are in the file now."""
        with tempfile.TemporaryDirectory(prefix="broker-core-spark-") as folder:
            try:
                with SqliteCatalog(Path(folder) / "names.sqlite", create=True) as catalog:
                    with self._path.open("rb") as lines:
                        repeats = import_topics(catalog, self._namespace, lines).repeats
                    with catalog.state() as state:
                        yield EmbeddedSnapshot(
                            state, {}, STATIC_ID, "a list of names has no versions", repeats
                        )
            except CatalogError as error:
                raise InvalidCatalogue(f"{self._shown}: {error}") from error
            except OSError as error:
                raise InvalidCatalogue(f"Cannot read {self._shown}: {error.strerror}") from error
