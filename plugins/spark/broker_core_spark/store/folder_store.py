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
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.create_once_check import check_creates_once
from broker_core_spark.store.stored_file import CHUNK, StoredFile, checked_path

__all__ = ["TEMPORARY", "FolderStore"]

#: Folder of unfinished files.
TEMPORARY: Final = "temporary"
#: Files that are written, and stay open, before they are synced, and files that are synced at once.
_OPEN_AT_ONCE: Final = 256
_SYNCED_AT_ONCE: Final = 4


class FolderStore:
    """The store in the folder ``root``. The first write makes the folder, and checks it.

    ``staged`` is the beginning of the names of unfinished files, in a task of a build: a killed one leaves them to the
    driver, which has checked the folder.
    """

    def __init__(self, root: Path, staged: str | None = None) -> None:
        self._root = root.absolute()
        self._checked = staged is not None
        self._unfinished = staged or "part"

    @property
    def uri(self) -> str:
        return str(self._root)

    def check(self) -> None:
        self._checked = True  # the check itself puts files
        try:
            check_creates_once(self, "this file system creates a file twice: no place for generations")
        except BaseException:
            self._checked = False
            raise

    def put_new(self, path: str, data: bytes | BinaryIO) -> bool:
        return self._put([(path, data)], self._link)[0]

    def put_all_new(self, files: Sequence[tuple[str, bytes | BinaryIO]]) -> list[bool]:
        return [
            created
            for first in range(0, len(files), _OPEN_AT_ONCE)
            for created in self._put(files[first : first + _OPEN_AT_ONCE], self._link)
        ]

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        self._put([(path, data)], _rename)

    def _put(
        self, files: Sequence[tuple[str, bytes | BinaryIO]], place: Callable[[Path, Path], bool]
    ) -> list[bool]:
        """Write files under temporary names. ``place`` gives each its own name when the bytes of all are durable."""
        if not self._checked:
            self.check()
        targets = [(path, self._root / checked_path(path)) for path, _ in files]
        # Staged files are gone with their build: nobody misses them after a loss of power.
        lasts = any(not path.startswith(f"{TEMPORARY}/") for path, _ in files)
        partial: list[Path] = []
        created: list[bool] = []
        try:
            with ExitStack() as opened:
                written = []
                for path, data in files:
                    with self._failing("cannot write", path):
                        written.append((path, opened.enter_context(self._unfinished_file(partial))))
                        _copy(data, written[-1][1])
                if lasts:
                    self._sync(written)
            for (path, target), own in zip(targets, partial, strict=True):
                with self._failing("cannot write", path):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    created.append(place(own, target))
            folders = {target.parent: path for path, target in targets} if lasts else {}
            for folder, path in folders.items():
                with self._failing("cannot write", path):
                    _sync_folder(folder)
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

    def _sync(self, files: Sequence[tuple[str, BinaryIO]]) -> None:
        """Make the bytes of files survive a loss of power."""

        def sync(one: tuple[str, BinaryIO]) -> None:
            path, file = one
            with self._failing("cannot write", path):
                os.fsync(file.fileno())

        if len(files) == 1:
            sync(files[0])
            return
        with ThreadPoolExecutor(_SYNCED_AT_ONCE) as threads:
            for _ in threads.map(sync, files):
                pass

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

    def get(self, path: str, limit: int) -> bytes | None:
        try:
            with self._opened(path) as file:
                data = file.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("cannot read", path, error) from error
        if len(data) > limit:
            raise DamagedFile(f"{self._root}/{path}: more than {limit} bytes")
        return data

    def get_range(self, path: str, start: int, stop: int) -> bytes:
        try:
            with self._opened(path) as file:
                file.seek(start)
                data = file.read(stop - start)
        except OSError as error:
            raise self._failed("cannot read", path, error) from error
        if len(data) != stop - start:
            raise DamagedFile(f"{self._root}/{path}: it ends before byte {stop}")
        return data

    def fetch(self, path: str, into: BinaryIO, size: int) -> bool:
        try:
            file = self._opened(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._failed("cannot read", path, error) from error
        with file:
            left = size + 1  # one byte more shows a file that is too long
            while left:
                try:
                    data = file.read(min(CHUNK, left))
                except OSError as error:
                    raise self._failed("cannot read", path, error) from error
                if not data:
                    break
                into.write(data)
                left -= len(data)
        if left != 1:
            found = "more" if not left else str(size + 1 - left)
            raise DamagedFile(f"{self._root}/{path}: {found} bytes where {size} are expected")
        return True

    def list(self, folder: str) -> Iterator[StoredFile]:
        try:
            with os.scandir(self._root / folder) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # deleted meanwhile
                    if entry.is_file(follow_symlinks=False):
                        modified = datetime.fromtimestamp(found.st_mtime, UTC)
                        yield StoredFile(f"{folder}/{entry.name}", found.st_size, modified)
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._failed("cannot list", folder, error) from error

    def delete(self, path: str) -> None:
        try:
            (self._root / checked_path(path)).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("cannot delete", path, error) from error

    def _opened(self, path: str) -> BinaryIO:
        """A file for reading. Raises :exc:`DamagedFile` for a pipe, whose opening would wait for a writer."""
        descriptor = os.open(self._root / checked_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        raise DamagedFile(f"{self._root}/{path}: it is no regular file")

    @contextmanager
    def _failing(self, what: str, path: str) -> Iterator[None]:
        """Turns errors of the system into :exc:`StoreFailed`."""
        try:
            yield
        except OSError as error:
            raise self._failed(what, path, error) from error

    def _failed(self, what: str, path: str, error: OSError) -> StoreFailed:
        return StoreFailed(f"{self._root}: {what} {path}: {error.strerror or error}")


def _rename(partial: Path, target: Path) -> bool:
    partial.replace(target)
    return True


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
