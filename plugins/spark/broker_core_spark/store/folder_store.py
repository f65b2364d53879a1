"""A store in a folder: a file is written under a temporary name, synced, and hard-linked to its own name.

A link to an existing name fails, for any number of writers and over NFS too. A rename would replace the file.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from broker_core_spark.errors import DamagedFile, StoreFailed
from broker_core_spark.store.create_once_check import check_creates_once
from broker_core_spark.store.stored_file import CHUNK, StoredFile, checked_path

__all__ = ["TEMPORARY", "FolderStore"]

#: Folder of unfinished files.
TEMPORARY: Final = "temporary"


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
        return self._put(path, data, self._link)

    def replace(self, path: str, data: bytes | BinaryIO) -> None:
        self._put(path, data, _rename)

    def _put(self, path: str, data: bytes | BinaryIO, place: Callable[[Path, Path], bool]) -> bool:
        """Write a file under a temporary name. ``place`` gives it its own name."""
        if not self._checked:
            self.check()
        target = self._root / checked_path(path)
        partial = self._root / TEMPORARY / f"{self._unfinished}-{secrets.token_hex(16)}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("xb") as file:
                    if isinstance(data, bytes):
                        file.write(data)
                    else:
                        shutil.copyfileobj(data, file, CHUNK)
                    file.flush()
                    os.fsync(file.fileno())
                return place(partial, target)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("cannot write", path, error) from error

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
        _sync_folder(target.parent)
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

    def _failed(self, what: str, path: str, error: OSError) -> StoreFailed:
        return StoreFailed(f"{self._root}: {what} {path}: {error.strerror or error}")


def _rename(partial: Path, target: Path) -> bool:
    partial.replace(target)
    _sync_folder(target.parent)
    return True


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a loss of power, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems sync no folders and need not
    finally:
        os.close(descriptor)
