"""Catalogues to measure: made once by the project's own imports and kept in a folder; each server gets a copy.

``topics-SIZE`` has one namespace of SIZE topics and a small one. ``namespaces-COUNT`` has COUNT small ones.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.catalog.store.schema import SCHEMA_VERSION
from broker_core.names import NamespaceName
from tests.benchmarks.growth.names_columns import SMALL_TOPICS, write_names, write_properties
from tests.benchmarks.names import namespace_of

__all__ = ["SMALL_NAMESPACE", "Catalogues", "default_cache", "many_namespace"]

#: Where a small listing is asked for.
SMALL_NAMESPACE: Final = "public/small"
#: Another number: files of an earlier version of this module are made anew.
_FORMAT: Final = 1
#: Imports of many small files wait for the disk most of the time; in memory they take a quarter of it.
_MEMORY: Final = Path("/dev/shm")


def default_cache() -> Path:
    """The folder for made catalogues, under the system's folder for temporary files."""
    return Path(tempfile.gettempdir()) / "broker-core-growth"


def many_namespace(number: int) -> str:
    """One of many small namespaces."""
    return f"many/n{number:05d}"


class Catalogues:
    """Made catalogues in the folder ``cache``; copies for servers go to the folder ``work``."""

    def __init__(self, cache: Path, work: Path, say: Callable[[str], None]) -> None:
        self._cache = cache
        self._work = work
        self._say = say
        self._copies = 0
        cache.mkdir(parents=True, exist_ok=True)

    def of_topics(self, size: int) -> Path:
        """The catalogue with a namespace of ``size`` topics and a small one."""
        return self._made(
            f"topics-{size}", lambda path: _fill_topics(path, size), f"{size:,} topics: import", self._cache
        )

    def of_namespaces(self, count: int) -> Path:
        """The catalogue with ``count`` small namespaces."""
        folder = _MEMORY if os.access(_MEMORY, os.W_OK) else self._cache
        return self._made(
            f"namespaces-{count}",
            lambda path: _fill_namespaces(path, count),
            f"{count:,} namespaces of {SMALL_TOPICS} topics: import",
            folder,
        )

    def _made(self, name: str, fill: Callable[[Path], None], what: str, making: Path) -> Path:
        # One of an earlier schema would be migrated by each server that starts, and that be measured.
        path = self._cache / f"{name}-{_FORMAT}-{SCHEMA_VERSION}.sqlite"
        if not path.exists():
            for former in self._cache.glob(f"{name}-*.sqlite"):
                former.unlink()
            self._say(what)
            begun = time.perf_counter()
            with tempfile.TemporaryDirectory(prefix="broker-core-growth-", dir=making) as folder:
                made = Path(folder) / "catalog.sqlite"
                fill(made)
                # A half of a copy must not be taken for a catalogue.
                part = path.with_suffix(f".part-{os.getpid()}")
                shutil.move(made, part)
                part.replace(path)
            self._say(f"{what}: {time.perf_counter() - begun:.0f} s, {path.stat().st_size / 1e6:,.0f} MB")
        return path

    @contextmanager
    def copy(self, made: Path) -> Iterator[Path]:
        """A copy of a made catalogue that a server may change, alone in a folder; it is removed at the end."""
        self._copies += 1
        folder = self._work / f"{self._copies}-{made.stem}"
        folder.mkdir(parents=True)
        try:
            yield Path(shutil.copyfile(made, folder / "catalog.sqlite"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _fill_topics(path: Path, size: int) -> None:
    names, properties = path.with_name("names.txt"), path.with_name("properties.jsonl")
    write_names(names, size)
    write_properties(properties, size)
    with SqliteCatalog(path) as catalog:
        namespace = NamespaceName.parse(namespace_of(size))
        for file in (names, properties):
            with file.open("rb") as source:
                import_topics(catalog, namespace, source)
            file.unlink()
        _import_small(catalog, SMALL_NAMESPACE)


def _fill_namespaces(path: Path, count: int) -> None:
    with SqliteCatalog(path) as catalog:
        for number in range(count):
            _import_small(catalog, many_namespace(number))


def _import_small(catalog: SqliteCatalog, namespace: str) -> None:
    own = namespace.partition("/")[2]
    lines = "".join(f"topic-{number:02d}-of-{own}\n" for number in range(SMALL_TOPICS))
    import_topics(catalog, NamespaceName.parse(namespace), io.BytesIO(lines.encode()))
