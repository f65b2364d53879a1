"""The folder of stored snapshots beside the catalogue: reading and writing its files, whatever stands in its place.

Every file is written under a name of its own, and renamed when it is complete. Nothing is changed in place. So any
number of processes may write into one folder, and a reader sees whole files, but for those that a crash of the machine
left: they are found by their checksums.

Files are read into memory of the process. They are not mapped: cutting a mapped file short ends the process (SIGBUS),
and a verified map may change afterwards. Reading costs a copy, which takes as long as the checksum; the verified bytes
are the ones in memory.

The folder may be missing, full, read-only or removed at any time. Nothing here raises more than :exc:`OSError` and
:exc:`~.file_errors.RefusedFile`.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from broker_core.quantities import format_size
from broker_core.snapshots.stored.file_errors import FolderUnusable, RefusedFile

__all__ = ["SnapshotFile", "SnapshotFolder", "folder_beside"]

#: Bytes of the disk that are left to others, the catalogue first.
_LEFT_FREE: Final = 256 * 1024 * 1024
#: Buffers that one call of the system takes (IOV_MAX is 1024).
_TOGETHER: Final = 512
#: The flags for opening a file: a FIFO does not wait for its other end, a link is not followed.
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_beside(catalog: Path) -> Path:
    """The folder of a catalogue's stored snapshots: ``NAME.snapshots`` beside the file itself."""
    real = Path(os.path.realpath(catalog))
    return real.with_name(f"{real.name}.snapshots")


class SnapshotFile(NamedTuple):
    """One name in the folder: its bytes, and when it was written or used, in seconds since 1970."""

    name: str
    size: int
    used: float


class SnapshotFolder:
    """The files of one folder by name; for any thread. Names are file names, without a folder."""

    def __init__(self, path: Path, *, left_free: int = _LEFT_FREE) -> None:
        self.path = path
        self._left_free = left_free

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """The open folder, whatever gets its name meanwhile. Raises :exc:`FolderUnusable`."""
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(self.path, 0o700)  # noqa: PTH102 - beside os.open
            folder = os.open(self.path, _OPEN_FOLDER)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                raise FolderUnusable(f"{self.path} is no folder, or a link to one: remove it") from error
            raise FolderUnusable(f"{self.path}: {error.strerror}") from error
        try:
            status = os.fstat(folder)
            # Its group may write: a volume of Kubernetes gives that right to the pod's group (fsGroup).
            if status.st_uid not in {os.geteuid(), 0} or status.st_mode & 0o002:
                raise FolderUnusable(
                    f"{self.path} belongs to another user, or all may write into it: "
                    "remove it, or set its owner and its mode (0700)"
                )
            yield folder
        finally:
            os.close(folder)

    def problem(self) -> str | None:
        """The reason why nothing can be stored here, as far as it shows without writing."""
        try:
            with self._opened() as folder:
                if os.access(".", os.R_OK | os.W_OK | os.X_OK, dir_fd=folder):
                    return None
                return f"{self.path} cannot be written, so nothing new is stored"
        except FileNotFoundError:  # it will be made, but no folder above it
            parent = self.path.parent
            if not parent.is_dir():
                return f"{self.path}: there is no folder {parent}, so nothing is stored"
            if not os.access(parent, os.W_OK | os.X_OK):
                return f"{self.path} cannot be made in {parent} by this user, so nothing is stored"
            return None
        except FolderUnusable as unusable:
            return str(unusable)

    def read(self, name: str, largest: int) -> bytes:
        """All of a file, of at most ``largest`` bytes. Raises :exc:`OSError` if it cannot be read."""
        with self._opened() as folder, _file(folder, _checked(name), largest) as (file, size):
            content = os.pread(file, size, 0)
            while len(content) < size:  # a network's file system may give less at a time
                more = os.pread(file, size - len(content), len(content))
                if not more:
                    raise RefusedFile(f"it ends after {len(content)} of {size} bytes")
                content += more
            return content

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """The bytes of files; ``None`` for a name that is no file. Raises :exc:`OSError` if there is no folder."""
        with self._opened() as folder:
            return [_size(folder, _checked(name)) for name in names]

    def write(self, name: str, pieces: Sequence[Any], *, wait_for_disk: bool = False) -> None:
        """Write a file of these buffers, in place of an older one.

        A caller that writes many files waits for the disk after each, so that a commit of the catalogue need not wait
        for all of them. Raises :exc:`OSError` if writing fails; then the file is unchanged, or missing.
        """
        _checked(name)
        with self._opened(make=True) as folder:
            size = sum(memoryview(piece).nbytes for piece in pieces)
            disk = os.fstatvfs(folder)
            if disk.f_bavail * disk.f_frsize < size + self._left_free:
                raise OSError(f"the last {format_size(self._left_free)} of the disk are left to others")
            part = f".{secrets.token_hex(8)}.part"
            file = os.open(part, _MAKE, 0o600, dir_fd=folder)
            try:
                try:
                    _write_all(file, pieces)
                    if wait_for_disk:
                        os.fdatasync(file)
                finally:
                    os.close(file)
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise

    def touch(self, name: str) -> bool:
        """Note that a file is used now; false if there is none."""
        try:
            with self._opened() as folder:
                os.utime(_checked(name), dir_fd=folder, follow_symlinks=False)
                return True
        except (OSError, RefusedFile):
            return False

    def has(self, name: str, size: int) -> bool:
        """Whether there is a file of this name and size, and note that it is used now."""
        try:
            return self.sizes([name]) == [size] and self.touch(name)
        except (OSError, RefusedFile):
            return False

    def files(self) -> list[SnapshotFile]:
        """All files of the folder; empty if there is none, or it cannot be used."""
        try:
            with self._opened() as folder, os.scandir(folder) as entries:
                found = []
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        found.append(SnapshotFile(entry.name, status.st_size, status.st_mtime))
                return found
        except (OSError, RefusedFile):
            return []

    def remove(self, name: str, *, unused_for: float = 0.0) -> bool:
        """Remove a name, unless it was used in the last ``unused_for`` seconds; returns whether it was removed."""
        try:
            with self._opened() as folder:
                used = os.stat(_checked(name), dir_fd=folder, follow_symlinks=False).st_mtime
                if unused_for and time.time() - used < unused_for:
                    return False
                os.unlink(name, dir_fd=folder)
                return True
        except (OSError, RefusedFile):
            return False


def _checked(name: str) -> str:
    if "/" in name or "\0" in name or name in {"", ".", ".."}:
        raise RefusedFile(f"{name!r:.100} is no name of a file")
    return name


def _size(folder: int, name: str) -> int | None:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def _file(folder: int, name: str, largest: int) -> Iterator[tuple[int, int]]:
    """(an open file, its bytes)."""
    file = os.open(name, _OPEN, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise RefusedFile("it is no file")
        if status.st_size > largest:
            raise RefusedFile(f"it has {status.st_size} bytes, more than {largest}")
        yield file, status.st_size
    finally:
        os.close(file)


def _write_all(file: int, pieces: Sequence[Any]) -> None:
    views: list[memoryview] = [memoryview(piece) for piece in pieces]
    left = [view.cast("B") for view in views if view.nbytes]
    while left:
        written = os.writev(file, left[:_TOGETHER])
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if written:
            left[0] = left[0][written:]
