"""Freeing a list of a million strings off the event loop, a few thousand at a time.

Freeing a million strings holds the interpreter's lock for 30 to 60 ms. It happens in the thread that drops the last
reference, which is mostly the event loop's.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, Final

from broker_core.concurrency import pass_lock_on

__all__ = ["MANY", "free_with"]

#: Fewer objects than this are freed in well under a millisecond.
MANY: Final = 20_000
_SLICE: Final = 5_000

# A finalizer may run in the midst of anything, and this queue is made for that: its `put` takes no lock.
_gone: Final[SimpleQueue[list[Sequence[Any]]]] = SimpleQueue()
_started = threading.Lock()


def free_with(owner: object, objects: Sequence[Any]) -> None:
    """Free ``objects`` in a thread once ``owner``, which refers to them, has gone.

    The sequence is not emptied: it, or some of its objects, may still be referenced elsewhere.
    """
    if _started.acquire(blocking=False):
        threading.Thread(target=_work, name="letting-go", daemon=True).start()
    weakref.finalize(owner, _gone.put, [objects]).atexit = False


def _work() -> None:
    while True:
        _free(_gone.get())


def _free(box: list[Sequence[Any]]) -> None:
    objects = box.pop()
    # The slices keep the objects, so that the sequence frees none of them if it goes now.
    slices = []
    for start in range(0, len(objects), _SLICE):
        slices.append(objects[start : start + _SLICE])
        pass_lock_on()
    del objects
    while slices:
        slices.pop()
        pass_lock_on()
