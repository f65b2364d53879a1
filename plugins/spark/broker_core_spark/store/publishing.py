"""Publishing generations: after all files are verified, by creating the next pointer.

Files of a store are created once and never changed. Two publishers at once get two numbers, and neither is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format import Manifest, canonical_json
from broker_core_spark.store.build_and_gc_marks import (
    SILENCE,
    boot_seconds,
    new_run,
    read_marks,
    sign_path,
    write_mark,
)
from broker_core_spark.store.published_pointers import (
    POINTERS,
    PublishedPointer,
    find_generation,
    highest_number,
)
from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_manifest import read_manifest
from broker_core_spark.store.verified_files import file_faults

__all__ = ["BuildInProgress", "BuildRun", "begin_build", "use_generation"]

_MOST: Final = 10**18 - 1  # as many digits as pointers may have
_ATTEMPTS: Final = 1000
_WAIT: Final = 0.2  # seconds between two looks for the end of a gc
_PATIENCE: Final = 60.0  # seconds of waiting for it
_SIGN: Final = 30.0  # seconds between two signs of life


def use_generation(store: Store, start: str) -> PublishedPointer:
    """Serve an older generation again: the one that begins with ``start``."""
    generation = find_generation(store, start)
    with begin_build(store) as build:
        return build.publish(read_manifest(store, generation), anew=True)


@dataclass(slots=True)
class BuildRun:
    """One run of a build: its id, and the pointer that it has published."""

    id: str = field(default_factory=new_run)
    published: PublishedPointer | None = None

    @property
    def staged(self) -> str:
        """The prefix of its staged files."""
        return f"temporary/stage-{self.id}"

    def remove_staged(self, store: Store) -> None:
        """Delete the build's staged files. If the store cannot, a later ``gc`` does."""
        with suppress(StoreFailed):
            for stored in list(store.list("temporary")):
                if stored.path.startswith(f"{self.staged}-"):
                    store.delete(stored.path)


@dataclass(slots=True)
class BuildInProgress:
    """A build under way, made by :func:`begin_build`. ``gc`` takes none of its files."""

    store: Store
    run: BuildRun
    _mark: str
    _signed: float = field(default_factory=boot_seconds)
    _ended: threading.Event = field(default_factory=threading.Event)

    def sign(self) -> None:
        """Give a sign of life. Raises :exc:`StoreFailed`."""
        began = boot_seconds()
        self.store.replace(sign_path(self.run.id), b"")
        self._signed = began

    def give_signs(self) -> None:
        """Give signs of life until the end."""
        while not self._ended.wait(_SIGN):
            with suppress(StoreFailed):  # the next sign may succeed, and `publish` looks at the last one
                self.sign()

    def end(self) -> None:
        """Give no more signs, and delete staged files, and then the mark. Raises :exc:`StoreFailed`."""
        self._ended.set()
        self.run.remove_staged(self.store)
        self.store.delete(self._mark)
        self.store.delete(sign_path(self.run.id))

    def wait_for_gc(self, otherwise: str) -> None:
        """Wait for the end of a ``gc``. Raises :exc:`StoreFailed` if it goes on, and if the mark has gone."""
        give_up = time.monotonic() + _PATIENCE
        while True:
            marks = read_marks(self.store, self.run.id)
            if not any(mark.file.path == self._mark for mark in marks):
                raise StoreFailed(
                    f"{self.store.uri}: the mark of this build has gone, as if it were dead: not published"
                )
            if not any(mark.kind == "gc" and mark.is_live for mark in marks):
                return
            if time.monotonic() >= give_up:
                raise StoreFailed(f"{self.store.uri}: gc is under way there: {otherwise}")
            time.sleep(_WAIT)

    def publish(
        self, manifest: Manifest, *, verified: Collection[str] = (), anew: bool = False
    ) -> PublishedPointer:
        """Serve a generation from now on, after its files are verified. ``anew`` is the pointer's.

        ``verified`` are names of files that this build wrote or read itself: only their sizes are looked at. All others
        are read. Raises :exc:`InvalidGeneration` for a file that is missing or has another size or checksum. Raises
        :exc:`StoreFailed` if ``gc`` may have removed files: the mark has gone, or no sign of life could be given for a
        long time.
        """
        _check_files(self.store, manifest, verified)
        self.wait_for_gc("not published")  # it may have seen no sign of life
        longest = SILENCE.total_seconds() / 2
        if boot_seconds() - self._signed >= longest:
            raise StoreFailed(
                f"{self.store.uri}: this build could give no sign of life for {longest:g} seconds: not published. Was "
                "the machine asleep, or the store away?"
            )
        pointer = self._next_pointer(manifest, anew)
        self.run.published = pointer
        return pointer

    def _next_pointer(self, manifest: Manifest, anew: bool) -> PublishedPointer:
        number = 0
        for _ in range(_ATTEMPTS):
            # A pipe or a folder is not listed, but takes a number all the same.
            number = max(highest_number(self.store), number) + 1
            if number > _MOST:
                raise StoreFailed(
                    f"{self.store.uri}: {POINTERS}/{_MOST}.json is there, and no number is higher: not published. No "
                    "build made it: remove it"
                )
            pointer = PublishedPointer(number, manifest.id, datetime.now(UTC), anew)
            record = {"generation": manifest.id, "when": pointer.when.isoformat()}
            if anew:
                record["anew"] = "yes"
            if self.store.put_new(pointer.path, canonical_json(record)):
                return pointer
        raise StoreFailed(f"{self.store.uri}: others published {_ATTEMPTS} times while this one tried to")


@contextmanager
def begin_build(store: Store, *, run: BuildRun | None = None) -> Iterator[BuildInProgress]:
    """Begin a build or another publication: inside the context a thread gives signs of life.

    Waits for the end of a ``gc``, and raises :exc:`StoreFailed` if that takes more than a minute. Its mark is there
    meanwhile, so no other ``gc`` begins. At the end of the context staged files are deleted, and then the mark.
    """
    run = run or BuildRun()
    build = BuildInProgress(store, run, write_mark(store, "build", run.id))
    try:
        threading.Thread(target=build.give_signs, name="signs-of-life", daemon=True).start()
        build.wait_for_gc("try again when it is done")
        yield build
    except BaseException:
        with suppress(StoreFailed):  # the failed build has the more important error
            build.end()
        raise
    build.end()


def _check_files(store: Store, manifest: Manifest, verified: Collection[str]) -> None:
    """Raise unless the store has every file of a generation with its size and, if not ``verified``, its checksum."""
    sizes = {
        found.path: found.size
        for folder in ("segments", "postings", "questions", "manifests")
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
    others = [file for file in expected if file.name not in verified]
    for file, fault in zip(others, file_faults(store, others), strict=True):
        if fault is not None:
            raise InvalidGeneration(file.name, f"{fault}: not published")
