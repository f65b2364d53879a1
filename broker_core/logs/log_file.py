"""Opening a file that lines are appended to, so that opening it waits for nobody."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = ["LogFileError", "open_log_file"]

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class LogFileError(BrokerCoreError):
    """A file of ``[log]`` cannot be written; the message names the setting and the file."""


def open_log_file(setting: str, file: Path) -> int:
    """The descriptor of a file, which is created if missing. Raises :exc:`LogFileError`.

    A named pipe is opened for reading too, so that Linux waits for no reader: lines wait in it until one comes.
    """
    try:
        flags = os.O_RDWR | os.O_CLOEXEC if _is_pipe(file) else _FLAGS
        return os.open(file, flags, 0o640)
    except OSError as error:
        raise LogFileError(f"{setting}: cannot write {file}: {error.strerror}") from error


def _is_pipe(file: Path) -> bool:
    try:
        return stat.S_ISFIFO(file.stat().st_mode)
    except FileNotFoundError:
        return False
