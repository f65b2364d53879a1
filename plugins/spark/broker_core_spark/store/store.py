"""Stores of files: folders (local, NFS) and buckets (S3, GCS, Azure).

Files are immutable, and publishing creates the next pointer. Both need *put if absent*: a hard link in a folder,
atomic over NFS too, and a conditional put in a bucket. The first write refuses a place that has neither. All calls
block and belong on a thread.
"""

from __future__ import annotations

import re
import secrets
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import ClassVar, Final, TypeAlias

from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed

__all__ = ["CHUNK", "PROBE", "FileData", "Store", "StoredFile", "failing", "system_reason"]

#: The bytes of a file to write, also in parts. A view is one of bytes (format ``B``): a bucket takes no other.
FileData: TypeAlias = bytes | Iterable[bytes | memoryview]
#: Bytes of one read.
CHUNK: Final = 256 * 1024
#: The beginning of the paths of files by which a store is checked.
PROBE: Final = "temporary/probe-"
_PATH: Final = re.compile(r"[a-z]+/[A-Za-z0-9_.-]{1,128}")

#: Advice for a task that does not find a file of this folder.
_GONE: Final = {
    "temporary": ": a store is a bucket or a folder that the driver and all executors share, and nobody else empties "
    "its folder temporary during a build"
}


def system_reason(error: Exception) -> str:
    """The text of an error of the system."""
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def failing(
    place: str,
    what: str,
    errors: type[Exception] | tuple[type[Exception], ...] = OSError,
    reason: Callable[[Exception], str] = system_reason,
) -> Iterator[None]:
    """Turns errors of a place into :exc:`StoreFailed`. ``what`` follows "cannot"."""
    try:
        yield
    except errors as error:
        raise StoreFailed(f"{place}: cannot {what}: {reason(error)}") from error


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a listing of the store. ``modified`` is the store's time (UTC)."""

    path: str
    size: int
    modified: datetime


class Store(ABC):
    """Files by names such as ``segments/...``. Failures are :exc:`StoreFailed`, with the address.

    ``uri`` is the address without secrets, for :func:`~.store_address.open_store`. The first write checks the place,
    unless somebody else has ``checked`` it.
    """

    #: The reason if the place creates a name twice.
    creates_twice: ClassVar[str]
    #: Files that are put at once: each waits for the disk or for the bucket.
    puts_at_once: ClassVar[int]
    #: The errors of a file that is not there.
    missing: ClassVar[tuple[type[Exception], ...]] = (FileNotFoundError,)

    def __init__(
        self,
        uri: str,
        *,
        checked: bool = False,
        errors: type[Exception] | tuple[type[Exception], ...] = OSError,
        reason: Callable[[Exception], str] = system_reason,
    ) -> None:
        self.uri = uri
        self._checked = checked
        #: Turns errors of the place into :exc:`StoreFailed`.
        self._failing = partial(failing, uri, errors=errors, reason=reason)

    def check(self) -> None:
        """Raise :exc:`StoreFailed` unless a name is created only once. Writes and deletes a small file."""
        path = f"{PROBE}{secrets.token_hex(8)}"
        try:
            first, second = (self._put(path, word, replace=False) for word in (b"first", b"second"))
            if not first or second or self.get(path, 64) != b"first":
                raise StoreFailed(f"{self.uri}: {self.creates_twice}")
        finally:
            with suppress(StoreFailed):  # the reason of the check matters more
                self.delete(path)
        self._checked = True

    def put_new(self, path: str, data: FileData) -> bool:
        """Create a whole file. Returns ``False`` if the name exists, and leaves that file as it is."""
        return self.put_all_new([(path, data)])[0]

    def put_all_new(self, files: Sequence[tuple[str, FileData]]) -> list[bool]:
        """Create whole files, (path, data) each, in less time than by :meth:`put_new`. Returns which were created.

        If it fails, some of the files may be there, each of them whole.
        """
        for path, _ in files:
            _checked_path(path)
        if not self._checked:
            self.check()
        return self.put_files(files)

    def replace(self, path: str, data: FileData) -> None:
        """Replace a file at once: for one that :mod:`~.verified_files` found to be damaged."""
        self.put_files([(_checked_path(path), data)], replace=True)

    def put_files(self, files: Sequence[tuple[str, FileData]], *, replace: bool = False) -> list[bool]:
        """Write files in a checked place, and return which were written: all with ``replace``."""
        if len(files) == 1:  # no thread is worth its start
            return [self._put(*files[0], replace)]
        with ThreadPoolExecutor(self.puts_at_once) as threads:
            return list(threads.map(lambda file: self._put(file[0], file[1], replace), files))

    def get(self, path: str, limit: int) -> bytes | None:
        """The bytes of a file, or ``None`` without one. Raises :exc:`DamagedFile` for more than ``limit`` bytes."""
        with (
            self._failing(f"read {path}"),
            suppress(*self.missing),
            self._reading(_checked_path(path)) as (size, chunks),
        ):
            if size > limit:
                raise DamagedFile(f"{self.uri}/{path}: {size} bytes, more than {limit}")
            return b"".join(chunks)
        return None

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of an existing file."""
        with self._failing(f"read {path}"):
            try:
                data = self._range(_checked_path(path), start, stop)
            except self.missing as error:
                raise StoreFailed(
                    f"{self.uri}: {path} is not there{_GONE.get(path.partition('/')[0], '')}"
                ) from error
        if len(data) != stop - start:
            raise DamagedFile(f"{self.uri}/{path}: it ends before byte {stop}")
        return data

    def get_blocks(self, path: str, blocks: Sequence[tuple[int, int, int]]) -> Iterator[memoryview]:
        """The bytes of neighbouring blocks of a staged file, read together: (start, stop, CRC-32) each.

        Raises :exc:`DamagedFile` for other bytes than were written.
        """
        first = blocks[0][0]
        data = memoryview(self.get_range(path, first, blocks[-1][1]))
        for start, stop, crc in blocks:
            if zlib.crc32(block := data[start - first : stop - first]) != crc:
                raise DamagedFile(
                    f"{self.uri}/{path}: bytes {start} to {stop} are not those that the build wrote"
                )
            yield block

    def fetch(self, path: str, size: int) -> Iterator[bytes]:
        """The bytes of a file of a generation, which has ``size`` of them, in parts.

        Raises :exc:`InvalidGeneration` without such a file, and :exc:`DamagedFile` for another size.
        """
        with (
            self._failing(f"read {path}"),
            suppress(*self.missing),
            self._reading(_checked_path(path)) as (stored, chunks),
        ):
            if stored != size:
                raise DamagedFile(f"{self.uri}/{path}: {stored} bytes where {size} are expected")
            yield from chunks
            return
        raise InvalidGeneration(path, "it is not in the store")

    def list(self, folder: str) -> Iterator[StoredFile]:
        """The files of a folder, unordered."""
        with self._failing(f"list {folder}"):
            yield from self._list(folder)

    def numbered(self, before: str, after: str) -> Sequence[tuple[int, str]]:
        """Numbers and paths of the files with a number between ``before`` and ``after``, the highest first.

        A number has 12 to 18 digits, with leading zeros up to 12. Names with others do not count.
        """
        name = re.compile(f"{re.escape(before)}([0-9]{{12,18}}){re.escape(after)}")
        found = [
            match for file in self.list(before.partition("/")[0]) if (match := name.fullmatch(file.path))
        ]
        return sorted(
            ((int(match[1]), match[0]) for match in found if match[1] == f"{int(match[1]):012}"), reverse=True
        )

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with self._failing(f"delete {path}"), suppress(*self.missing):
            self._delete(_checked_path(path))

    @abstractmethod
    def _put(self, path: str, data: FileData, replace: bool) -> bool:
        """Write a whole file. Returns ``False`` if the name exists and is not to be replaced."""

    @abstractmethod
    def _reading(self, path: str) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """The size of a file, and its bytes, at most so many."""

    @abstractmethod
    def _range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of a file, or fewer if it ends before."""

    @abstractmethod
    def _list(self, folder: str) -> Iterator[StoredFile]:
        """The files of a folder."""

    @abstractmethod
    def _delete(self, path: str) -> None:
        """Delete a file."""


def _checked_path(path: str) -> str:
    """The path, if it is a folder and a plain name. Raises :exc:`StoreFailed` for anything else."""
    if not _PATH.fullmatch(path) or path.endswith("."):
        raise StoreFailed(f"{path!r:.200} is no path of a store")
    return path
