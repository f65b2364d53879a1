"""Running a plugin's functions: contained, within a deadline, in a thread if they may block.

A call runs by itself: an ``async`` function as a task, a plain function in a thread of the plugin. The caller waits
for it until the deadline, then cancels it and goes on, whether or not it ends. A call that runs past its deadline is
*abandoned*: it is kept and counted. An ``async`` function that blocks the event loop cannot be interrupted: the time is
measured, and an answer past the deadline is rejected.

The consequences of a failure are decided by :class:`~broker_core.plugins.call.hook_caller.HookCaller` for hooks that
are called repeatedly, and by :mod:`~broker_core.plugins.hooks.startup_shutdown` for the hooks of start and end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from broker_core.plugins.call.abandoned_calls import Abandoned
from broker_core.plugins.call.deadline import Deadline
from broker_core.plugins.call.event_loop_time import LoopTime, Stepwise
from broker_core.plugins.call.plugin_threads import PluginThreads, RaisedByPlugin, ThreadsFull
from broker_core.plugins.load.hook_implementations import Implementation
from broker_core.plugins.raised_exceptions import is_a, is_awaitable

__all__ = ["NotInTime", "PluginRunner", "contained", "plain"]


class NotInTime(Exception):
    """A call did not end within its deadline; the deadline says whether it held the event loop."""


async def contained(
    start: Callable[[], Awaitable[Any]], loop_time: LoopTime, on_step: Callable[[float], None] | None = None
) -> Any:
    """The answer of an ``async`` function of a plugin, as the body of a task that cannot end the event loop.

    The steps that it takes on the loop are counted in ``loop_time``; ``on_step`` is called with the seconds of each.
    """
    try:
        return await Stepwise(start, loop_time, on_step)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop
        raise RaisedByPlugin(error) from None


def plain(error: BaseException) -> BaseException:
    """The exception of the plugin itself, without the :exc:`RaisedByPlugin` around it."""
    return error.error if isinstance(error, RaisedByPlugin) else error


class PluginRunner:
    """Runner of one plugin's functions: its threads, and its abandoned calls."""

    def __init__(self, name: str, threads: PluginThreads | None = None) -> None:
        self.name = name
        self.threads = threads or PluginThreads(name)
        self.abandoned = Abandoned(name)

    @property
    def abandoned_calls(self) -> int:
        """The number of abandoned calls, in threads and on the event loop."""
        return self.threads.abandoned + len(self.abandoned)

    async def run(
        self,
        implementation: Implementation,
        values: Mapping[str, object],
        deadline: Deadline,
        loop_time: LoopTime,
    ) -> Any:
        """The result of ``implementation`` for ``values`` (its arguments by name), within the deadline.

        Raises :exc:`NotInTime`, :exc:`~broker_core.plugins.call.plugin_threads.ThreadsFull`, or
        :exc:`~broker_core.plugins.call.plugin_threads.RaisedByPlugin` with whatever the function raised.
        """
        loop = asyncio.get_running_loop()
        function = partial(implementation.function, **values)
        work: asyncio.Future[Any]
        if implementation.is_async:
            work = loop.create_task(contained(function, loop_time, deadline.held_loop))
        else:
            work = self.threads.submit(function)
        answer = await self._result(deadline, work)
        if not implementation.is_async and is_awaitable(answer):
            # A plain function that returns the coroutine of another.
            coroutine = contained(lambda: answer, loop_time, deadline.held_loop)
            answer = await self._result(deadline, loop.create_task(coroutine))
        return answer

    async def close(self) -> None:
        """End the abandoned calls, and the threads."""
        await self.abandoned.end()
        self.threads.close()

    async def _result(self, deadline: Deadline, work: asyncio.Future[Any]) -> Any:
        try:
            in_time = await deadline.wait(work)
        except asyncio.CancelledError:
            self.abandoned.leave(work)
            raise
        if not in_time:
            self.abandoned.leave(work)
            raise NotInTime
        if work.cancelled():
            raise RaisedByPlugin(asyncio.CancelledError())
        error = work.exception()
        if error is None:
            return work.result()
        if is_a(error, ThreadsFull):
            raise error
        # A new exception: the task keeps its own, with the traceback of the waiting caller.
        raise RaisedByPlugin(plain(error)) from None
