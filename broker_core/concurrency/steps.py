"""Work in steps: a generator that yields before each further step whether it is quick, and returns the result.

An event loop does a little work of this kind itself, with its sockets served between the steps: handing half a
millisecond of work to a thread takes as long again, and the loop waits for the interpreter's lock meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

from broker_core.concurrency.cpu_threads import in_thread

__all__ = ["Steps", "finished", "in_turns"]

T = TypeVar("T")

Steps: TypeAlias = "Generator[bool, None, T]"
#: Seconds until the next step: a timer that is due runs after the events of sockets by then, but a callback of
#: call_soon, as after `asyncio.sleep(0)`, before them.
_NEXT: Final = 1e-9


def finished(steps: Steps[T]) -> T:
    """The result of all steps; the remaining ones are done here."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: T = end.value
            return made


async def in_turns(steps: Steps[T], key: object) -> T:
    """Do all steps on the running event loop, which serves its sockets between two of them.

    From the first step on that is not quick, all are done in a thread, in the turns of ``key``.
    """
    while True:
        try:
            is_quick = next(steps)
        except StopIteration as end:
            made: T = end.value
            return made
        if not is_quick:
            return await in_thread(key, finished, steps)
        await asyncio.sleep(_NEXT)
