"""A store in a folder: a file is written under a temporary name, synced, and hard-linked to its own name.

A link to an existing name fails, for any number of writers and over NFS too. A rename would replace the file. Files
that are put together are synced by several threads at once, and their folder after them: the file system writes its
journal once for several of them.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.store import CHUNK, FileData, Store, StoredFile

__all__ = ["TEMPORARY", "FolderStore"]

#: Folder of unfinished files.
TEMPORARY: Final = "temporary"


class FolderStore(Store):
    """The store in the folder ``root``. The first write makes the folder, and checks it.

    ``staged`` is the beginning of the names of unfinished files, in a task of a build: a killed one leaves them to the
    driver, which has checked the folder.
    """

    creates_twice = "this file system creates a file twice: no place for generations"
    puts_at_once = 4

    def __init__(self, root: Path, staged: str | None = None) -> None:
        self._root = root.absolute()
        super().__init__(str(self._root), checked=staged is not None)
        self._unfinished = staged or "part"

    def put_files(self, files: Sequence[tuple[str, FileData]], *, replace: bool = False) -> list[bool]:
        created = super().put_files(files, replace=replace)
        # Staged files are gone with their build: nobody misses them after a loss of power.
        for folder in {path.partition("/")[0] for path, _ in files} - {TEMPORARY}:
            with self._failing(f"write {folder}"):
                _sync_folder(self._root / folder)
        return created

    def _put(self, path: str, data: FileData, replace: bool) -> bool:
        target = self._root / path
        partial = self._root / TEMPORARY / f"{self._unfinished}-{secrets.token_hex(16)}"
        with self._failing(f"write {path}"):
            for folder in (target.parent, partial.parent):
                folder.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("xb") as file:
                    file.writelines([data] if isinstance(data, bytes) else data)
                    if target.parent != partial.parent:
                        file.flush()
                        os.fsync(file.fileno())
                if not replace:
                    return self._link(partial, target)
                partial.replace(target)
                return True
            finally:
                partial.unlink(missing_ok=True)

    def _link(self, partial: Path, target: Path) -> bool:
        try:
            os.link(partial, target)
        except FileExistsError:
            # NFS may lose the answer to a link that it made. Then both names are one file.
            return partial.samefile(target)
        except OSError as error:
            raise StoreFailed(
                f"{self._root}: this file system makes no hard links ({error.strerror}), so a name could be created "
                "twice: no place for generations"
            ) from error
        return True

    @contextmanager
    def _reading(self, path: str) -> Iterator[tuple[int, Iterator[bytes]]]:
        with self._opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            yield size, (file.read(min(CHUNK, size - at)) for at in range(0, size, CHUNK))

    def _range(self, path: str, start: int, stop: int) -> bytes:
        with self._opened(path) as file:
            file.seek(start)
            return file.read(stop - start)

    def _list(self, folder: str) -> Iterator[StoredFile]:
        with suppress(FileNotFoundError), os.scandir(self._root / folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found = entry.stat(follow_symlinks=False)
                    if entry.is_file(follow_symlinks=False):
                        modified = datetime.fromtimestamp(found.st_mtime, UTC)
                        yield StoredFile(f"{folder}/{entry.name}", found.st_size, modified)

    def _delete(self, path: str) -> None:
        (self._root / path).unlink()

    def _opened(self, path: str) -> BinaryIO:
        """A file for reading. Raises :exc:`DamagedFile` for a pipe, whose opening would wait for a writer."""
        descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
        raise DamagedFile(f"{self._root}/{path}: it is no regular file")


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a loss of power, if the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems sync no folders and need not
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
