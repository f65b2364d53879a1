"""Standard output or standard error of a server, as an object: what is printed goes line by line to a queue."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable

__all__ = ["CapturedPrints"]

#: Characters of a line without an end that are held back.
_LONGEST = 64 * 1024


class CapturedPrints(io.TextIOBase):
    """Takes what plugins and libraries print, from any thread, and never waits.

    ``take`` gets each line without its end. ``descriptor`` is the one that they would have written to.
    """

    def __init__(self, descriptor: int, take: Callable[[str], object]) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._take = take
        self._lock = threading.RLock()
        self._begun: dict[int, str] = {}  # by thread: `print` writes a line in parts

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute there
        return "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, text: str, /) -> int:
        thread = threading.get_ident()
        with self._lock:
            *lines, begun = (self._begun.pop(thread, "") + text).split("\n")
            if len(begun) > _LONGEST:
                lines.append(begun)
            elif begun:
                self._begun[thread] = begun
        for line in lines:
            self._take(line)
        return len(text)

    def end(self) -> None:
        """Hand on unfinished lines."""
        with self._lock:
            begun, self._begun = self._begun, {}
        for line in begun.values():
            self._take(line)
