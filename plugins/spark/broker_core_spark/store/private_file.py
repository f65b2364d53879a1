"""Private files without a name: written once, mapped, and gone with their last reader.

Nobody else can truncate or change such a file, so reading a mapped page never fails. Mapped pages are no memory of the
process: the kernel drops unused ones and reads them again.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa

from broker_core_spark.store.store import failing

__all__ = ["PrivateFile"]


class PrivateFile(AbstractContextManager["PrivateFile"]):
    """A file to append to and to map. Leaving its context closes the file, and the map stays."""

    def __init__(self, directory: str | None = None) -> None:
        """A file in ``directory``, by default the system's folder for temporary files.

        Raises :exc:`StoreFailed` if no file can be made.
        """
        self._directory = directory or tempfile.gettempdir()
        with self._failing():
            # Larger writes pass the buffer by. One of 1 MiB does not stay in a processor's cache: hashing and writing
            # names alone took 1.5 times as long with it, a whole swap some hundredths longer.
            self._file = tempfile.TemporaryFile(buffering=64 * 1024, dir=self._directory)  # noqa: SIM115

    def __exit__(self, *_: object) -> None:
        with self._failing():
            self._file.close()

    def write(self, data: Iterable[Any]) -> None:
        """Append buffers of bytes or numbers. Raises :exc:`StoreFailed` if there is no room."""
        with self._failing():
            self._file.writelines(data)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def mapped(self) -> pa.Buffer:
        """All bytes so far, mapped read-only. The map lives as long as the buffer or a part of it."""
        with self._failing():
            self._file.flush()
            if not self.size:
                return pa.py_buffer(b"")
            return pa.py_buffer(mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ))

    def _failing(self) -> AbstractContextManager[None]:
        return failing(self._directory, "keep a private copy there")
