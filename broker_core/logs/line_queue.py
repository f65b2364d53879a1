"""A bounded queue of lines and the one thread that writes them to a file descriptor: no other thread waits for it.

A pipe without a reader is full after 64 KiB, a terminal can be stopped, a disk can hang. A caller with a line puts it
into a bounded queue and goes on. The descriptor stays as it is, blocking: it is shared with other processes. The thread
asks whether the descriptor takes more, and then writes no more than a pipe takes at once.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from broker_core.logs.dropped_line_count import Reason

__all__ = ["LineQueue"]

#: Most lines of a queue; they are a few hundred bytes long.
_MAX_LINES: Final = 50_000
_MAX_BYTES: Final = 8 * 1024 * 1024
#: A pipe that can be written to takes so much without blocking (POSIX).
_PIPE_BYTES: Final = select.PIPE_BUF
#: Bytes that are written at once if nothing blocks.
_FILE_BYTES: Final = 256 * 1024
#: Seconds until the thread looks again for other work.
_LOOK: Final = 0.5


def _nothing() -> Iterable[str]:
    return ()


class LineQueue:
    """Writes to ``descriptor``, from the first line on until :meth:`close`.

    ``on_dropped`` gets how many lines were lost, and why: ``"full"`` or ``"failed"``. ``more`` is called in the thread,
    at least every half second, for lines that are due now. ``owned``: the descriptor is closed at the end.
    ``gathering`` is how many seconds the first line may wait for further ones, to be written with them.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        on_dropped: Callable[[Reason, int], None] = lambda _reason, _lines: None,
        more: Callable[[], Iterable[str]] = _nothing,
        owned: bool = False,
        max_lines: int = _MAX_LINES,
        max_bytes: int = _MAX_BYTES,
        gathering: float = 0.0,
        name: str = "log writer",
    ) -> None:
        self._descriptor = descriptor
        self._owned = owned
        self._on_dropped = on_dropped
        self._more = more
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._gathering = gathering
        # An RLock below: a finalizer or a signal's handler may log in the midst of `offer`, on the same thread.
        self._news = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._writing = 0  # lines that the thread has taken and not written yet
        self._next: int | None = None  # the descriptor to go on with
        self._closed = False
        self._hurried = False  # somebody waits until all is written
        self._given_up = False
        self._torn = False  # the last line is there in part only
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def offer(self, text: str) -> bool:
        """Write ``text``, which ends its line, when its turn comes; ``False``: it is lost. Never waits."""
        data = text.encode("utf-8", "backslashreplace")
        with self._news:
            if self._closed:
                return False
            # One text is taken in any case, whatever its size.
            fits = len(self._waiting) < self._max_lines and self._waiting_bytes + len(data) <= self._max_bytes
            if fits or not self._waiting:
                if not self._waiting:
                    self._news.notify_all()
                self._waiting.append(data)
                self._waiting_bytes += len(data)
                return True
        self._on_dropped("full", 1)
        return False

    def flush(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until all is written; returns whether it is."""
        with self._news:
            self._hurried = True
            self._news.notify_all()
            try:
                return self._news.wait_for(lambda: not (self._waiting or self._writing), timeout)
            finally:
                self._hurried = False

    def replace(self, descriptor: int) -> None:
        """Go on with another descriptor, which is owned from now on."""
        with self._news:
            if self._next is not None:
                os.close(self._next)
            self._next = descriptor
            self._news.notify_all()

    def close(self, timeout: float) -> bool:
        """Take no more lines, and wait at most ``timeout`` seconds until all are written; returns whether they are."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        written = self.flush(timeout)
        self._given_up = not written
        self._thread.join(2 * _LOOK)
        return written

    def _run(self) -> None:
        while not self._given_up:
            for line in self._more():
                self._write(line.encode("utf-8", "backslashreplace"), 1)
            with self._news:
                if not self._waiting:
                    if self._closed:
                        break
                    self._news.wait(_LOOK)
                if self._gathering and self._waiting:
                    self._news.wait_for(self._is_due, self._gathering)
                self._go_on_with_the_next()
                data, lines = self._taken()
            if lines:
                self._write(data, lines)
                with self._news:
                    self._writing = 0
                    self._news.notify_all()
        if self._owned:
            os.close(self._descriptor)

    def _is_due(self) -> bool:
        """Whether there is no time for gathering lines."""
        return self._closed or self._hurried

    def _go_on_with_the_next(self) -> None:
        if self._next is not None:
            if self._owned:
                os.close(self._descriptor)
            self._descriptor, self._next, self._owned, self._torn = self._next, None, True, False

    def _taken(self) -> tuple[bytes, int]:
        """The lines to write next, as many as are written at once."""
        bound = _FILE_BYTES if _never_blocks(self._descriptor) else _PIPE_BYTES
        parts: list[bytes] = []
        size = 0
        while self._waiting and (not parts or size + len(self._waiting[0]) <= bound):
            parts.append(self._waiting.popleft())
            size += len(parts[-1])
        self._waiting_bytes -= size
        self._writing = len(parts)
        return b"".join(parts), len(parts)

    def _write(self, data: bytes, lines: int) -> None:
        descriptor = self._descriptor
        left = memoryview(b"\n" + data if self._torn else data)
        begun = False
        try:
            bound = len(left) if _never_blocks(descriptor) else _PIPE_BYTES
            ready = select.poll()
            ready.register(descriptor, select.POLLOUT)
            while left:
                if self._next is not None and not begun:
                    with self._news:
                        self._go_on_with_the_next()
                    return self._write(data, lines)
                if not ready.poll(_LOOK * 1000):
                    if self._given_up:
                        return None
                    continue
                try:
                    left = left[os.write(descriptor, left[:bound]) :]
                    begun = True
                except BlockingIOError:  # another process made it non-blocking, and was quicker
                    continue
            self._torn = False
        except OSError:
            self._torn = begun
            self._on_dropped("failed", min(lines, bytes(left).count(b"\n")))
        return None


def _never_blocks(descriptor: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    except OSError:
        return False
