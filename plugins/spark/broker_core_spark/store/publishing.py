"""Publishing generations: after all files are verified, by creating the next pointer.

Files of a store are created once and never changed. Two publishers at once get two numbers, and neither is lost.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format.canonical_question import canonical_json
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    live_marks,
    read_marks,
    write_mark,
)
from broker_core_spark.store.published_pointers import (
    PublishedPointer,
    find_generation,
    highest_number,
    pointer_path,
)
from broker_core_spark.store.read_manifest import read_manifest
from broker_core_spark.store.store import Store
from broker_core_spark.store.verified_files import file_faults

__all__ = ["BuildInProgress", "begin_build", "use_generation"]

_MOST: Final = 10**18 - 1  # as many digits as pointers may have
_ATTEMPTS: Final = 1000
_WAIT: Final = 0.2  # seconds between two looks for the end of a gc


def use_generation(store: Store, start: str) -> PublishedPointer:
    """Serve an older generation again: the one that begins with ``start``."""
    generation = find_generation(store, start)
    with begin_build(store) as build:
        return build.publish(read_manifest(store, generation))


class BuildInProgress:
    """A build under way, made by :func:`begin_build`. ``gc`` takes none of its files."""

    def __init__(self, store: Store, mark: str, grace: timedelta) -> None:
        self.store = store
        self._mark = mark
        self._ends = time.monotonic() + grace.total_seconds()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.store.delete(self._mark)
        except StoreFailed:
            if error is None:  # a failed build has the more important error
                raise

    def publish(self, manifest: Manifest, *, verified: Collection[str] = ()) -> PublishedPointer:
        """Serve a generation from now on, after its files are verified.

        ``verified`` are names of files that this build wrote or read itself: only their sizes are looked at. All
        others are read. Raises :exc:`InvalidGeneration` for a file that is missing or has another size or checksum.
        Raises :exc:`StoreFailed` where the time of grace is over, because ``gc`` may remove the files.
        """
        if time.monotonic() >= self._ends:
            raise StoreFailed(
                f"{self.store.uri}: the build took longer than its time of grace: not published"
            )
        _check_files(self.store, manifest, verified)
        if not any(mark.file.path == self._mark for mark in read_marks(self.store)):
            raise StoreFailed(f"{self.store.uri}: the mark of this build has gone: not published")
        number = 0
        for _ in range(_ATTEMPTS):
            # A pipe or a folder is not listed and takes a number all the same.
            number = max(highest_number(self.store), number) + 1
            if number > _MOST:
                raise StoreFailed(
                    f"{self.store.uri}: {pointer_path(_MOST)} is there, and no number is higher: not published. No "
                    "build made it: remove it"
                )
            pointer = PublishedPointer(number, manifest.id, datetime.now(UTC))
            data = canonical_json({"generation": manifest.id, "when": pointer.when.isoformat()})
            if self.store.put_new(pointer.path, data):
                return pointer
        raise StoreFailed(f"{self.store.uri}: others published {_ATTEMPTS} times while this one tried to")


def begin_build(store: Store, *, grace: timedelta = BUILD_GRACE, wait: float = 60.0) -> BuildInProgress:
    """Begin a build or another publication; a context manager.

    Waits up to ``wait`` seconds for the end of a ``gc``, and raises :exc:`StoreFailed` after it.
    """
    give_up = time.monotonic() + wait
    while True:
        path = write_mark(store, "build")
        others = read_marks(store)
        if not live_marks(others, "gc", path, GC_GRACE):
            return BuildInProgress(store, path, grace)
        store.delete(path)
        if time.monotonic() >= give_up:
            raise StoreFailed(f"{store.uri}: gc is under way there: try again when it is done")
        time.sleep(_WAIT)


def _check_files(store: Store, manifest: Manifest, verified: Collection[str]) -> None:
    """Raise unless the store has every file of a generation with its size and, if not ``verified``, its checksum."""
    sizes = {
        found.path: found.size
        for folder in ("segments", "questions", "manifests")
        for found in store.list(folder)
    }
    expected = [*manifest.files, manifest.entry]
    for file in expected:
        if file.name not in sizes:
            raise InvalidGeneration(file.name, "it is not in the store: not published")
        if sizes[file.name] != file.size:
            raise InvalidGeneration(
                file.name, f"it has {sizes[file.name]} bytes, not {file.size}: not published"
            )
    for name, fault in file_faults(store, [file for file in expected if file.name not in verified]):
        raise InvalidGeneration(name, f"{fault}: not published")
