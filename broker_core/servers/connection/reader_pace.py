"""The pace of writing a large answer: as its peer reads, in pieces by which a slow one cannot hold much memory."""

from __future__ import annotations

from typing import Final

__all__ = ["LEAST_PIECE", "PIECE", "SLOW", "ReaderPace", "piece_for"]

#: The most bytes of an answer that a transport gets at once. A hundred peers may be writable in one turn of the event
#: loop, and the kernel copies all that is written in it: at a mebibyte each, a PONG would wait for a hundred of these
#: copies.
PIECE: Final = 128 * 1024
#: The fewest: a peer that reads slowly, or not at all, keeps so many waiting in its transport.
LEAST_PIECE: Final = 16 * 1024

#: Bytes a second: a slower reader may be closed if other requests wait for the memory of its answer.
SLOW: Final = 1024 * 1024
_SLOW_SECONDS: Final = 1.0  # before this it is not called slow

_PIECE_SECONDS: Final = 0.02  # the time that a piece should take to leave
_LEAST_SECONDS: Final = 0.001  # before this nothing is known of a peer's speed


def piece_for(done: int, seconds: float, least: int, most: int) -> int:
    """Bytes of the next piece: as many as take 20 ms at the speed of ``done`` bytes in so many seconds, in bounds."""
    return max(least, min(most, int(done / max(seconds, _LEAST_SECONDS) * _PIECE_SECONDS)))


class ReaderPace:
    """The pace of one answer of ``size`` bytes, from ``now`` on; times are in seconds of the event loop's clock.

    The peer has ``write_timeout`` seconds and one for each ``min_rate`` bytes; only time in which the server waits for
    it counts. ``min_rate`` of 0 is no limit.
    """

    __slots__ = ("_min_rate", "_patience", "_started", "_waiting_since", "_write_timeout", "_written")

    def __init__(self, size: int, now: float, *, write_timeout: float, min_rate: int) -> None:
        self._started = now
        self._written = 0
        self._waiting_since: float | None = None
        self._write_timeout = write_timeout
        self._min_rate = min_rate
        self._patience = write_timeout + size / min_rate if min_rate > 0 else float("inf")

    @property
    def patience(self) -> float:
        """Seconds that the peer may keep this answer waiting still."""
        return max(self._patience, 0.0)

    def stall(self, now: float) -> float:
        """Seconds that the peer may take nothing from ``now`` on: ``write_timeout``, or as long as it has been faster
        than ``min_rate`` on the whole.

        The kernels of both sides have buffers of tens of megabytes. They fill at once; then a steady reader that is
        slow takes from them, and nothing of the answer leaves for many seconds.
        """
        ahead = self._written / self._min_rate - (now - self._started) if self._min_rate > 0 else 0.0
        return min(max(self._write_timeout, ahead), self.patience)

    def piece(self, now: float) -> int:
        """Bytes to write next: as many as the peer takes in 20 ms at its speed so far."""
        seconds = now - self._started
        if seconds < _LEAST_SECONDS:
            return PIECE
        return piece_for(self._written, seconds, LEAST_PIECE, PIECE)

    def slowness(self, now: float) -> float | None:
        """The time that this has taken, in seconds, if the peer reads slower than :data:`SLOW`; else ``None``."""
        seconds = now - self._started
        return seconds if seconds >= _SLOW_SECONDS and self._written < seconds * SLOW else None

    def wrote(self, size: int) -> None:
        """Count written bytes."""
        self._written += size

    def waits(self, now: float) -> None:
        """The peer takes no more for now."""
        self._waiting_since = now

    def goes_on(self, now: float) -> None:
        """The peer has taken all that was written."""
        if self._waiting_since is not None:
            self._patience -= now - self._waiting_since
            self._waiting_since = None
