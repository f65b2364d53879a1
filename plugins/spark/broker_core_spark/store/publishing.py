"""Publishing generations, and choosing the one that is served.

Everything in a store is created once and never changed. A published generation is a *pointer*, a small file whose name
is a number: whoever creates the next number has published, and the highest number is what brokers serve. To go back to
an older generation is one more pointer. Two publishers at once get two numbers, and none is lost.

``gc`` and builds keep off each other by *marks*: each writes its own first and then looks for the other's, so that at
least one of two sees the other. A build that was killed leaves a mark, which counts for nothing when it is older than
the time of grace.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self

from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration, StoreFailed
from broker_core_spark.format.canonical_question import canonical_json
from broker_core_spark.format.manifest import Manifest, manifest_name
from broker_core_spark.store.read_manifest import read_manifest
from broker_core_spark.store.store import Store
from broker_core_spark.store.stored_file import Stored
from broker_core_spark.store.verify_file import faults_of, named

__all__ = [
    "GC_GRACE",
    "GENERATION",
    "GRACE",
    "MARKS",
    "Build",
    "Mark",
    "Published",
    "alive",
    "begin_build",
    "current",
    "find",
    "history",
    "make_mark",
    "marks",
    "pointers",
    "previous",
    "use",
]

#: How long a build may take: its mark and its files are kept from ``gc`` for so long.
GRACE: Final = timedelta(hours=24)
#: The same for a ``gc``: one that was killed must not keep builds off for long. It counts from before its mark is
#: there, and begins to delete nothing more when half of this is over, however long its reading took.
GC_GRACE: Final = timedelta(minutes=20)
POINTERS: Final = "pointers"
MARKS: Final = "marks"
_POINTER: Final = re.compile(r"pointers/([0-9]{12,18})\.json")
_POINTER_LIMIT: Final = 4096
_MOST: Final = 10**18 - 1  # as many digits as are read
_ATTEMPTS: Final = 1000
_WAIT: Final = 0.2  # seconds between looks whether gc is done
#: The name of a generation.
GENERATION: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Published:
    """One pointer: ``generation`` is served since ``when`` (UTC, the publisher's clock), unless a higher number is."""

    number: int
    generation: str
    when: datetime

    @property
    def path(self) -> str:
        return _pointer_path(self.number)


def _pointer_path(number: int) -> str:
    return f"{POINTERS}/{number:012}.json"


def _numbers(store: Store) -> list[int]:
    """The numbers of all pointers, the highest first; a number is written in one way alone."""
    matches = (_POINTER.fullmatch(found.path) for found in store.list(POINTERS))
    numbers = (
        int(match.group(1)) for match in matches if match and match.group(1) == f"{int(match.group(1)):012}"
    )
    return sorted(numbers, reverse=True)


def _read(store: Store, number: int) -> Published | None:
    path = _pointer_path(number)
    try:
        data = store.get(path, _POINTER_LIMIT)
    except DamagedFile as error:
        raise InvalidGeneration(path, f"it is no pointer to a generation: {error}") from None
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise InvalidGeneration(path, "it is no pointer to a generation: it is no text in UTF-8") from None
    try:
        record = json.loads(text)
        generation, when = record["generation"], datetime.fromisoformat(record["when"])
        if not GENERATION.fullmatch(generation) or when.tzinfo is None:
            raise ValueError("its generation or its time is none")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InvalidGeneration(path, f"it is no pointer to a generation: {error!s:.100}") from None
    return Published(number, generation, when)


def pointers(store: Store) -> Iterator[Published | InvalidGeneration]:
    """All pointers, the newest first; in place of one that cannot be read, what is wrong with it."""
    for number in _numbers(store):
        try:
            found = _read(store, number)
        except InvalidGeneration as error:
            yield error
        else:
            if found is not None:
                yield found


def history(store: Store) -> Iterator[Published]:
    """All pointers that can be read, the newest first."""
    return (found for found in pointers(store) if isinstance(found, Published))


def current(store: Store) -> Published | None:
    """The generation that is to be served, ``None`` where nothing is published yet.

    Raises :exc:`InvalidGeneration` where the newest pointer cannot be read: what it said is not known, and something
    else is not served for it.
    """
    found = next(pointers(store), None)
    if isinstance(found, InvalidGeneration):
        raise found
    return found


def find(store: Store, start: str) -> str:
    """The whole id of the generation that begins with ``start`` (at least 4 digits), published or not.

    Raises :exc:`NoSuchGeneration` where there is none, or several.
    """
    if not re.fullmatch(r"[0-9a-f]{4,64}", start):
        raise NoSuchGeneration(f"{start!r:.100} is no generation: at least 4 of its hex digits")
    ids = {found.path.partition("/")[2].partition(".")[0] for found in store.list("manifests")}
    found = sorted(one for one in ids if one.startswith(start) and GENERATION.fullmatch(one))
    if len(found) != 1:
        what = f"{len(found)} generations begin" if found else "no generation begins"
        raise NoSuchGeneration(f"{store.uri}: {what} with {start}")
    return found[0]


def previous(store: Store) -> str:
    """The generation that was served before the current one. Raises :exc:`NoSuchGeneration` without one.

    Where the newest pointer cannot be read, that is what the newest that can be read names.
    """
    found = pointers(store)
    newest = next(found, None)
    served = newest.generation if isinstance(newest, Published) else None
    for pointer in found:
        if isinstance(pointer, Published) and pointer.generation != served:
            return pointer.generation
    raise NoSuchGeneration(f"{store.uri}: no other generation was served before")


def use(store: Store, start: str) -> Published:
    """Serve the generation that begins with ``start`` from now on: the way back to an older one."""
    generation = find(store, start)
    with begin_build(store) as build:
        return build.publish(read_manifest(store, generation))


@dataclass(frozen=True, slots=True)
class Mark:
    """A build or a gc that is under way: since when, by the store's own clock."""

    kind: str
    file: Stored


def marks(store: Store) -> list[Mark]:
    """All marks, also of those that died."""
    found = (Mark(stored.path.partition("/")[2].partition("-")[0], stored) for stored in store.list(MARKS))
    return [mark for mark in found if mark.kind in ("build", "gc")]


def make_mark(store: Store, kind: str) -> str:
    """Write a mark and give its path."""
    path = f"{MARKS}/{kind}-{secrets.token_hex(12)}"
    store.put_new(path, b"")
    return path


class Build:
    """A build under way: nothing that it writes is taken by ``gc``. Made by :func:`begin_build`."""

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
            if error is None:  # else it would hide why the build failed
                raise

    def publish(self, manifest: Manifest, *, verified: Collection[str] = ()) -> Published:
        """Make a generation the one that is served, once all of its files are seen to be whole.

        ``verified`` are names of files that this build wrote or has read back already: they must be there with their
        sizes. All others are read. Raises :exc:`InvalidGeneration` for a file that is missing, has another size or
        another checksum, and :exc:`StoreFailed` where the build took longer than its time of grace, so that its files
        may be gone any moment.
        """
        if time.monotonic() >= self._ends:
            raise StoreFailed(
                f"{self.store.uri}: the build took longer than its time of grace: not published"
            )
        _check_files(self.store, manifest, verified)
        if not any(mark.file.path == self._mark for mark in marks(self.store)):
            raise StoreFailed(f"{self.store.uri}: the mark of this build has gone: not published")
        number = 0
        for _ in range(_ATTEMPTS):
            # What is no file (a pipe, a folder) is not listed, and takes a number all the same.
            number = max(next(iter(_numbers(self.store)), 0), number) + 1
            if number > _MOST:
                raise StoreFailed(
                    f"{self.store.uri}: {_pointer_path(_MOST)} is there, and no number is higher: not published. No "
                    "build made it: remove it"
                )
            pointer = Published(number, manifest.id, datetime.now(UTC))
            data = canonical_json({"generation": manifest.id, "when": pointer.when.isoformat()})
            if self.store.put_new(pointer.path, data):
                return pointer
        raise StoreFailed(f"{self.store.uri}: others published {_ATTEMPTS} times while this one tried to")


def begin_build(store: Store, *, grace: timedelta = GRACE, wait: float = 60.0) -> Build:
    """Begin a build (or anything that publishes); use it as a context manager.

    Waits up to ``wait`` seconds for a ``gc`` that is under way, and raises :exc:`StoreFailed` if it still is.
    """
    give_up = time.monotonic() + wait
    while True:
        path = make_mark(store, "build")
        others = marks(store)
        if not alive(others, "gc", path, GC_GRACE):
            return Build(store, path, grace)
        store.delete(path)
        if time.monotonic() >= give_up:
            raise StoreFailed(f"{store.uri}: gc is under way there: try again when it is done")
        time.sleep(_WAIT)


def alive(found: list[Mark], kind: str, own: str, grace: timedelta) -> list[Mark]:
    """The marks of a kind that are younger than the time of grace, by the clock that wrote ``own``."""
    now = next((mark.file.modified for mark in found if mark.file.path == own), None)
    return [
        mark
        for mark in found
        if mark.kind == kind and mark.file.path != own and (now is None or now - mark.file.modified < grace)
    ]


def _check_files(store: Store, manifest: Manifest, verified: Collection[str]) -> None:
    """Raise unless every file of a generation is in the store with its size and, if not ``verified``, its checksum."""
    sizes = {
        found.path: found.size
        for folder in ("segments", "questions", "manifests")
        for found in store.list(folder)
    }
    expected = [*named(manifest.files), (manifest_name(manifest.id), len(manifest.data), manifest.id)]
    for name, size, _ in expected:
        if name not in sizes:
            raise InvalidGeneration(name, "it is not in the store: not published")
        if sizes[name] != size:
            raise InvalidGeneration(name, f"it has {sizes[name]} bytes, not {size}: not published")
    for name, fault in faults_of(store, [file for file in expected if file[0] not in verified]):
        raise InvalidGeneration(name, f"{fault}: not published")
