"""A store in a folder: a file is written under a temporary name, synced, and hard-linked to its own name.

A link to an existing name fails, for any number of writers and over NFS too. A rename would replace the file. Files
that are put together are synced at once: the file system writes its journal once for several of them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.store import Store, failing
from broker_core_spark.store.stored_file import CHUNK, StoredFile, checked_path

__all__ = ["TEMPORARY", "FolderStore"]

#: Folder of unfinished files.
TEMPORARY: Final = "temporary"
#: Files that are written, and stay open, before they are synced, and files that are synced at once.
_OPEN_AT_ONCE: Final = 256
_SYNCED_AT_ONCE: Final = 4


class FolderStore(Store):
    """The store in the folder ``root``. The first write makes the folder, and checks it.

    ``staged`` is the beginning of the names of unfinished files, in a task of a build: a killed one leaves them to the
    driver, which has checked the folder.
    """

    creates_twice = "this file system creates a file twice: no place for generations"

    def __init__(self, root: Path, staged: str | None = None) -> None:
        self._root = root.absolute()
        super().__init__(str(self._root), checked=staged is not None)
        self._unfinished = staged or "part"

    def _put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        return [
            created
            for first in range(0, len(files), _OPEN_AT_ONCE)
            for created in self._put(files[first : first + _OPEN_AT_ONCE], self._link)
        ]

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        self._put([(checked_path(path), data)], Path.replace)

    def _put(
        self, files: Sequence[tuple[str, bytes | BinaryIO]], place: Callable[[Path, Path], object]
    ) -> list[bool]:
        """Write files under temporary names. ``place`` gives each its own name when the bytes of all are durable."""
        # Staged files are gone with their build: nobody misses them after a loss of power.
        lasts = any(not path.startswith(f"{TEMPORARY}/") for path, _ in files)
        partial: list[Path] = []
        created: list[bool] = []
        try:
            with ExitStack() as opened:
                written = []
                for path, data in files:
                    with self._failing(f"write {path}"):
                        written.append((path, opened.enter_context(self._unfinished_file(partial))))
                        _copy(data, written[-1][1])
                if lasts and len(written) == 1:  # no thread is worth its start
                    self._sync(written[0])
                elif lasts:
                    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as threads:
                        list(threads.map(self._sync, written))
            for (path, _), own in zip(files, partial, strict=True):
                with self._failing(f"write {path}"):
                    target = self._root / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    created.append(bool(place(own, target)))
            for folder in dict.fromkeys(path.partition("/")[0] for path, _ in files) if lasts else ():
                with self._failing(f"write {folder}"):
                    _sync_folder(self._root / folder)
            return created
        finally:
            for own in partial:
                own.unlink(missing_ok=True)

    def _unfinished_file(self, partial: list[Path]) -> BinaryIO:
        """A new file, whose path is appended to ``partial``."""
        path = self._root / TEMPORARY / f"{self._unfinished}-{secrets.token_hex(16)}"
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("xb")
        partial.append(path)
        return file

    def _sync(self, written: tuple[str, BinaryIO]) -> None:
        """Make the bytes of a file survive a loss of power."""
        with self._failing(f"write {written[0]}"):
            os.fsync(written[1].fileno())

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

    def _failing(self, what: str) -> AbstractContextManager[None]:
        return failing(self.uri, what)


def _copy(data: bytes | BinaryIO, file: BinaryIO) -> None:
    if isinstance(data, bytes):
        file.write(data)
    else:
        shutil.copyfileobj(data, file, CHUNK)
    file.flush()


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a loss of power, if the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems sync no folders and need not
    finally:
        os.close(descriptor)
