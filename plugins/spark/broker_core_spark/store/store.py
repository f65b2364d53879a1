"""Stores of files: folders (local, NFS) and buckets (S3, GCS, Azure).

Files are immutable, and publishing creates the next pointer. Both need *put if absent*: a hard link in a folder,
atomic over NFS too, and a conditional put in a bucket. The first write refuses a place that has neither. All calls
block and belong on a thread.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO, ClassVar, Final

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.stored_file import StoredFile, checked_path

__all__ = ["PROBE", "Store", "failing", "system_reason"]

#: The beginning of the paths of files by which a store is checked.
PROBE: Final = "temporary/probe-"

#: What to look at if a task does not find a file of this folder.
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


class Store(ABC):
    """Files by names such as ``segments/...``. Failures are :exc:`StoreFailed`, with the address.

    ``uri`` is the address without secrets, for :func:`~.store_address.open_store`. The first write checks the place,
    unless somebody else has ``checked`` it.
    """

    #: The reason if the place creates a name twice.
    creates_twice: ClassVar[str]
    #: The errors of a file that is not there.
    missing: ClassVar[tuple[type[Exception], ...]] = (FileNotFoundError,)

    def __init__(self, uri: str, *, checked: bool = False) -> None:
        self.uri = uri
        self._checked = checked

    def check(self) -> None:
        """Raise :exc:`StoreFailed` unless a name is created only once. Writes and deletes a small file."""
        self._checked = True  # the check itself puts files
        path = f"{PROBE}{secrets.token_hex(8)}"
        try:
            first, second = self.put_new(path, b"first"), self.put_new(path, b"second")
            if not first or second or self.get(path, 64) != b"first":
                raise StoreFailed(f"{self.uri}: {self.creates_twice}")
        except BaseException:
            self._checked = False
            raise
        finally:
            with suppress(StoreFailed):  # the reason of the check matters more
                self.delete(path)

    def put_new(self, path: str, data: bytes | BinaryIO) -> bool:
        """Create a whole file. Returns ``False`` if the name exists, and leaves that file as it is."""
        return self.put_all_new([(path, data)])[0]

    def put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        """Do and return what :meth:`put_new` does for each (path, data), in less time than one by one.

        If it fails, some of the files may be there, each of them whole.
        """
        for path, _ in files:
            checked_path(path)
        if not self._checked:
            self.check()
        return self._put_all_new(files)

    @abstractmethod
    def _put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        """Do what :meth:`put_all_new` does, in a checked place."""

    def get(self, path: str, limit: int) -> bytes | None:
        """The bytes of a file, or ``None`` without one. Raises :exc:`DamagedFile` for more than ``limit`` bytes."""
        with (
            self._failing(f"read {path}"),
            suppress(*self.missing),
            self._reading(checked_path(path)) as file,
        ):
            size, chunks = file
            if size > limit:
                raise DamagedFile(f"{self.uri}/{path}: {size} bytes, more than {limit}")
            return b"".join(chunks)
        return None

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start`` to ``stop`` of an existing file."""
        with self._failing(f"read {path}"):
            try:
                data = self._range(checked_path(path), start, stop)
            except self.missing as error:
                raise StoreFailed(
                    f"{self.uri}: {path} is not there{_GONE.get(path.partition('/')[0], '')}"
                ) from error
        if len(data) != stop - start:
            raise DamagedFile(f"{self.uri}/{path}: it ends before byte {stop}")
        return data

    def fetch(self, path: str, into: BinaryIO, size: int) -> bool:
        """Append a file of ``size`` bytes to ``into``. Returns ``False`` without such a file.

        Raises :exc:`DamagedFile` for another size.
        """
        with (
            self._failing(f"read {path}"),
            suppress(*self.missing),
            self._reading(checked_path(path)) as file,
        ):
            stored, chunks = file
            if stored != size:
                raise DamagedFile(f"{self.uri}/{path}: {stored} bytes where {size} are expected")
            for chunk in chunks:  # noqa: FURB122 - a target may have `write` alone
                into.write(chunk)
            return True
        return False

    def list(self, folder: str) -> Iterator[StoredFile]:
        """The files of a folder, unordered."""
        with self._failing(f"list {folder}"):
            yield from self._list(folder)

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        with self._failing(f"delete {path}"), suppress(*self.missing):
            self._delete(checked_path(path))

    @abstractmethod
    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        """Replace a file at once: for one that :mod:`~.verified_files` found to be damaged."""

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

    @abstractmethod
    def _failing(self, what: str) -> AbstractContextManager[None]:
        """Turns errors of the place into :exc:`StoreFailed`."""
