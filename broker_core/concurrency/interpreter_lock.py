"""Releasing the interpreter's lock (GIL) from a thread that holds it for milliseconds again and again."""

from __future__ import annotations

import time
from typing import Final

__all__ = ["pass_lock_on"]

# A waiting thread requests the lock after 5 ms without a release. A thread that releases it for an instant in between,
# as every system call does, takes it back before the other has woken up, and so can keep the event loop waiting for as
# long as it has work. So it must release the lock for longer than waking up takes.
_SECONDS: Final = 1e-4


def pass_lock_on(seconds: float = 0.0) -> None:
    """Release the lock to a waiting thread for the given time, or 0.15 ms. Never on an event loop."""
    time.sleep(max(seconds, _SECONDS))
