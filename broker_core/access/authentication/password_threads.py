"""The threads in which passwords are verified: two at once, and the addresses of clients take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeVar

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.concurrency import TurnQueue

__all__ = ["AT_ONCE", "PasswordThreads"]

V = TypeVar("V")

#: Passwords that are verified at once.
AT_ONCE: Final = 2
#: Passwords that may wait, in all and of one host.
_MOST_WAITING: Final = 10_000
_MOST_OF_HOST: Final = 1_000


@dataclass(slots=True, eq=False, repr=False)
class _Job(Generic[V]):
    """A password that waits to be verified, or is being so."""

    key: Hashable
    name: bytes
    work: Callable[[], V]
    verdict: asyncio.Future[V]
    waiters: int = 0
    turn: tuple[int, int] = field(default=(0, 0))


class PasswordThreads(Generic[V]):
    """Runs verifications, each with a verdict. Equal ones, by their names, that are under way are one."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="password")
        self._queue: TurnQueue[_Job[V]] = TurnQueue()
        self._jobs: dict[bytes, _Job[V]] = {}
        self._of_host: Counter[Hashable] = Counter()
        self._running = 0
        self._is_closed = False

    async def run(self, host: str, name: bytes, work: Callable[[], V]) -> V:
        """The verdict of ``work``; raises :exc:`AuthenticationFailed` if too many wait.

        Work without waiting callers is not begun.
        """
        job = self._jobs.get(name)
        if job is None:
            if self._is_closed:
                raise _closed()
            if len(self._queue.items) >= _MOST_WAITING or self._of_host[host] >= _MOST_OF_HOST:
                raise AuthenticationFailed("overloaded", "too many passwords wait to be verified")
            job = _Job(host, name, work, asyncio.get_running_loop().create_future())
            self._jobs[name] = job
            self._of_host[host] += 1
            self._queue.put(job)
            self._begin()
        job.waiters += 1
        try:
            return await asyncio.shield(job.verdict)
        finally:
            job.waiters -= 1
            if not job.waiters and self._queue.remove(job):
                self._forget(job)

    def close(self) -> None:
        """Begin no more work, and refuse waiting work; running work ends by itself."""
        self._is_closed = True
        for job in self._queue.items.copy():
            self._queue.remove(job)
            self._forget(job)
            job.verdict.set_exception(_closed())
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        while self._running < AT_ONCE and self._queue.items:
            job = self._queue.items[0]
            self._queue.take(job)
            self._running += 1
            done = asyncio.get_running_loop().run_in_executor(self._threads, job.work)
            done.add_done_callback(partial(self._ended, job))

    def _ended(self, job: _Job[V], done: asyncio.Future[V]) -> None:
        self._running -= 1
        self._forget(job)
        error = None if done.cancelled() else done.exception()
        if done.cancelled():
            job.verdict.set_exception(_closed())
        elif error is not None:
            job.verdict.set_exception(error)
        else:
            job.verdict.set_result(done.result())
        job.verdict.exception()  # read, since all waiting callers may have gone
        if not self._is_closed:
            self._begin()

    def _forget(self, job: _Job[V]) -> None:
        del self._jobs[job.name]
        self._of_host[job.key] -= 1
        if not self._of_host[job.key]:
            del self._of_host[job.key]


def _closed() -> AuthenticationFailed:
    return AuthenticationFailed("overloaded", "the server stops")
