"""A file of names as a catalogue: imported into a temporary embedded catalogue."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from broker_core.catalog import CatalogError, ImportRefused, SqliteCatalog, import_topics
from broker_core.names import NamespaceName
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID, CatalogueSnapshot
from broker_core_spark.batch.sources.quarantine import Quarantine, QuarantinedRow
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSnapshot
from broker_core_spark.format.canonical_question import DOMAIN_ORDER

__all__ = ["NamesSource"]


class NamesSource:
    """A static catalogue: a file of names, one a line, or of JSON lines with properties.

    The rules are those of ``broker-core topics import``. With ``quarantine``, a line that it refuses is put aside.
    """

    static = True

    def __init__(self, path: Path, namespace: str, *, quarantine: bool = False) -> None:
        self._path = path
        self._namespace = NamespaceName.parse(namespace)
        self._quarantine = quarantine

    @contextmanager
    def snapshot(self) -> Iterator[CatalogueSnapshot]:
        """The names that are in the file now."""
        quarantine = Quarantine()
        with tempfile.TemporaryDirectory(prefix="broker-core-spark-") as folder:
            try:
                with SqliteCatalog(Path(folder) / "names.sqlite", create=True) as catalog:
                    with self._path.open("rb") as lines:
                        if self._quarantine:
                            repeats = self._import_good_lines(catalog, lines, quarantine)
                        else:
                            repeats = import_topics(catalog, self._namespace, lines).repeats
                    with catalog.state() as state:
                        yield EmbeddedSnapshot(
                            state, STATIC_ID, "a file of names has no versions", repeats, quarantine.rows
                        )
            except CatalogError as error:
                raise InvalidCatalogue(f"{self._path}: {error}") from error
            except OSError as error:
                raise InvalidCatalogue(f"Cannot read {self._path}: {error.strerror}") from error

    def _import_good_lines(self, catalog: SqliteCatalog, file: BinaryIO, quarantine: Quarantine) -> int:
        """Import the lines between the refused ones, part by part. Returns the number of repeated names."""
        size = file.seek(0, io.SEEK_END)
        names = 0
        parts = [(0, size, 0)]  # from and to a position, and the number of lines before
        while parts:
            start, stop, before = parts.pop()
            file.seek(start)
            try:
                names += import_topics(catalog, self._namespace, cast(BinaryIO, _Part(file, stop))).names
            except ImportRefused as refused:
                file.seek(start)
                for _ in range(refused.line - 1):
                    file.readline()
                end = file.tell()
                line = file.readline()
                number = before + refused.line
                quarantine.add([QuarantinedRow.of(line.rstrip(b"\r\n"), refused.reason, line=number)])
                parts += [(file.tell(), stop, number), (start, end, before)]
        with catalog.state() as state:
            return names - sum(len(state.names(self._namespace, domain).names) for domain in DOMAIN_ORDER)


class _Part:
    """A file up to a position, as an import reads it."""

    def __init__(self, file: BinaryIO, stop: int) -> None:
        self._file = file
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        left = self._stop - self._file.tell()
        return self._file.read(left if size < 0 else min(size, left))
