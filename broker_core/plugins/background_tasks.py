"""Background tasks of plugins (``broker.spawn``): supervised, and ended with the broker.

An ``async`` function runs as a task on the event loop, a plain one in a thread of its own. An
exception of a task is logged and shown with the task's name, and the task is started again after a pause that grows
with each failure. A task that returns is finished.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import structlog

from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import Abandoned, contained, result_of
from broker_core.plugins.call.plugin_threads import PluginThreads, RaisedByPlugin
from broker_core.plugins.raised_exceptions import in_words, is_awaitable, kind, trace

__all__ = ["BackgroundTasks"]

log = structlog.get_logger(__name__)

#: Seconds before a task that failed is started again: the first time, and the most after failures in a row.
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
#: A task that ran for so many seconds had recovered from its failure.
RECOVERED_AFTER: Final = 60.0
#: Seconds that the tasks of a plugin have to end when the broker does.
LAST_SECONDS: Final = 5.0

#: Valid names of tasks: they are shown, and labels of metrics.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(slots=True)
class _BackgroundTask:
    """One task. ``state`` is ``"running"``, ``"waiting"`` (to be started again), ``"failed"`` or ``"ended"``."""

    name: str
    factory: Callable[..., Any]
    restart: bool
    loop_time: LoopTime
    state: str = "running"
    failures: int = 0
    error: str | None = None  # its kind: the text may be confidential
    last_error: str | None = None
    supervisor: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def is_over(self) -> bool:
        return self.state in {"failed", "ended"}


class BackgroundTasks:
    """The tasks of one plugin. :meth:`claim` is for any thread, the other methods are for the event loop."""

    def __init__(self, plugin: str, abandoned: Abandoned) -> None:
        self._plugin = plugin
        self._abandoned = abandoned
        self._tasks: dict[str, _BackgroundTask] = {}
        self._lock = threading.Lock()
        self._closed = False

    def claim(self, factory: Callable[..., Any], name: str, *, restart: bool) -> Callable[[], None]:
        """Reserve ``name`` for a task of ``factory``; the returned function starts it, on the event loop.

        Raises :exc:`TypeError` and :exc:`ValueError` for invalid arguments, :exc:`ValueError` for the name of an
        unfinished task, :exc:`RuntimeError` once the broker stops.
        """
        if not callable(factory):
            instead = ": give the function, without calling it" if is_awaitable(factory) else ""
            raise TypeError(f"factory must be a function, not {type(factory).__name__}{instead}")
        if not isinstance(name, str):
            raise TypeError(f"name must be a string, not {type(name).__name__}")
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"name {name!r:.100} is none for a task: letters, digits, '.', '_', '-', 64 at most"
            )
        if not isinstance(restart, bool):
            raise TypeError(f"restart must be a bool, not {type(restart).__name__}")
        with self._lock:
            if self._closed:
                raise RuntimeError("the broker stops: no task is started any more")
            old = self._tasks.get(name)
            if old is not None and not old.is_over:
                raise ValueError(f"a task {name!r} of this plugin is there already")
            task = _BackgroundTask(name, factory, restart, LoopTime(self._plugin, f"spawn:{name}"))
            self._tasks[name] = task
        return partial(self._start, task)

    def describe(self) -> list[dict[str, Any]]:
        """Plain values of each task, in the order in which their names were first reserved."""
        return [
            {
                "name": task.name,
                "state": task.state,
                "failures": task.failures,
                "error": task.error,
                "last_error": task.last_error,
                "loop": task.loop_time.describe(),
            }
            for task in self._tasks.values()
        ]

    @property
    def dead(self) -> list[str]:
        """A sentence for each task that does not run because it failed."""
        return [
            f"task {task.name!r} failed: {task.error}"
            for task in self._tasks.values()
            if task.state in {"failed", "waiting"}
        ]

    def loop_times(self) -> dict[str, LoopTime]:
        """Seconds that each task held the event loop, by ``spawn:NAME``."""
        return {f"spawn:{name}": task.loop_time for name, task in self._tasks.items()}

    async def close(self) -> None:
        """End all tasks, and start none any more. Tasks that do not end are left behind."""
        with self._lock:
            self._closed = True
        supervisors = [task.supervisor for task in self._tasks.values() if task.supervisor is not None]
        for supervisor in supervisors:
            supervisor.cancel()
        await asyncio.gather(*supervisors, return_exceptions=True)

    def _start(self, task: _BackgroundTask) -> None:
        if not self._closed:
            task.supervisor = asyncio.get_running_loop().create_task(self._supervise(task))

    async def _supervise(self, task: _BackgroundTask) -> None:
        clock = asyncio.get_running_loop().time
        pause = FIRST_PAUSE
        while True:
            task.state, begun = "running", clock()
            try:
                await self._run(task)
            except RaisedByPlugin as carried:
                error = carried.error
            else:
                task.state = "ended"
                return
            if clock() - begun >= RECOVERED_AFTER:
                pause = FIRST_PAUSE
            task.state = "waiting" if task.restart else "failed"
            task.failures += 1
            task.error, task.last_error = kind(error), in_words(error)
            log.error(
                "plugin task failed",
                plugin=self._plugin,
                task=task.name,
                error=task.last_error,
                again_in=pause if task.restart else None,
                exception=trace(error),
            )
            del error  # in its own traceback, it would keep all that the task had
            if not task.restart:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run(self, task: _BackgroundTask) -> None:
        """Run a task once. Raises :exc:`RaisedByPlugin` for whatever it raises."""
        loop = asyncio.get_running_loop()
        if inspect.iscoroutinefunction(task.factory):
            await self._ended(loop.create_task(contained(task.factory, task.loop_time)), None)
            return
        stop = threading.Event()
        threads = PluginThreads(f"{self._plugin}-{task.name}", size=1, queue=0)
        try:
            answer = await self._ended(threads.submit(partial(_call, task.factory, stop)), stop)
        finally:
            threads.close()
        if is_awaitable(answer):
            # A plain function that returns the coroutine of another.
            await self._ended(loop.create_task(contained(lambda: answer, task.loop_time)), None)

    async def _ended(self, work: asyncio.Future[Any], stop: threading.Event | None) -> Any:
        """The result of ``work``; if cancelled, the work is asked to stop, and has some time for it."""
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            if stop is None:
                work.cancel()
            else:
                stop.set()
            await asyncio.wait([work], timeout=LAST_SECONDS)
            if not work.done():
                log.warning("plugin task does not end", plugin=self._plugin)
                self._abandoned.leave(work)
            elif not work.cancelled():
                work.exception()
            raise
        return result_of(work)


def _call(factory: Callable[..., Any], stop: threading.Event) -> Any:
    """Call a plain function, in its thread; with ``stop`` if it has this argument."""
    return factory(stop=stop) if "stop" in inspect.signature(factory).parameters else factory()
