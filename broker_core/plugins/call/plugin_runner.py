"""Running a plugin's functions: contained, within a deadline, in a thread if they may block.

A call runs by itself: an ``async`` function as a task, a plain function in a thread of the plugin. The caller waits
for it until the deadline, then cancels it and goes on, whether or not it ends. The deadline's clock stops while the
plugin waits for the broker (permits, ``rest()``). An ``async`` function that blocks the event loop cannot be
interrupted: the time is measured, and an answer past the deadline is rejected.

A call that runs past its deadline is *abandoned*: it is kept and counted. A plugin can ignore its cancellation. Then
its task is kept, or it would be collected while it runs, and its error is read, or asyncio would report it as never
retrieved. When the broker ends, such a task must not keep the process: ``asyncio.run`` waits for every task that it
cancels, even for ever.

The consequences of a failure are decided by :class:`~broker_core.plugins.call.hook_caller.HookCaller` for hooks that
are called repeatedly, and by :mod:`~broker_core.plugins.hooks.startup_shutdown` for the hooks of start and end.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _unregister_task
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from broker_core.errors import ListingFailed
from broker_core.plugins.call.event_loop_time import LoopTime, Stepwise
from broker_core.plugins.call.plugin_threads import PluginThreads, RaisedByPlugin, ThreadsFull
from broker_core.plugins.load.hook_implementations import Implementation
from broker_core.plugins.raised_exceptions import is_a, is_awaitable

__all__ = ["Abandoned", "Deadline", "NotInTime", "PluginRunner", "Waits", "contained", "result_of"]


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


def result_of(work: asyncio.Future[Any]) -> Any:
    """The result of a plugin's work that has ended. Raises :exc:`RaisedByPlugin`, or :exc:`ThreadsFull`."""
    if work.cancelled():
        raise RaisedByPlugin(asyncio.CancelledError())
    error = work.exception()
    if error is None:
        return work.result()
    if is_a(error, ThreadsFull):
        raise error
    # A new exception: the task keeps its own, with the traceback of the waiting caller.
    raise RaisedByPlugin(error.error if isinstance(error, RaisedByPlugin) else error) from None


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
        return result_of(work)


#: Exceptions of a group that are compared: a request makes no more calls of the broker at a time.
_OF_A_GROUP: Final = 16

#: A function of the broker that a plugin may have to wait for.
Waits: TypeAlias = Callable[..., Awaitable[Any]]


class Deadline:
    """A wait for a piece of work, at most for ``seconds`` of the work's own time."""

    __slots__ = (
        "_begun",
        "_left",
        "_loop",
        "_paused_at",
        "_pauses",
        "_raised",
        "_since",
        "_timer",
        "_waiter",
        "overrun",
        "seconds",
        "stood_still",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        #: The deadline in seconds.
        self.seconds = seconds
        self._left = seconds
        self._since = loop.time()
        self._begun = False
        self._pauses = 0
        self._paused_at = 0.0
        #: Seconds for which the work waited for the broker.
        self.stood_still = 0.0
        #: Whether the work held the event loop beyond its time, when nothing could end it.
        self.overrun = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._raised: list[BaseException] = []

    async def wait(self, work: asyncio.Future[Any]) -> bool:
        """Whether ``work`` ended in time. Neither a time-out nor a cancellation of this call ends the work itself."""
        await asyncio.sleep(0)  # most plugins that do not wait have answered after this
        if work.done():
            return not self.overrun
        self._begun = True
        self._waiter = self._loop.create_future()
        work.add_done_callback(self._wake)
        self._resume()
        try:
            await self._waiter
        finally:
            self._stop()
            self._waiter = None
            work.remove_done_callback(self._wake)
        return work.done() and not self.overrun

    def held_loop(self, seconds: float) -> None:
        """Note that the work has held the event loop for so many seconds, without a pause.

        Only the work's own use of the loop can overrun its time, not that of others.
        """
        if self._timer is not None:
            left = self._left - (self._loop.time() - self._since)
        else:
            if not self._begun:
                self._left -= seconds
            left = self._left
        if left < 0 < left + seconds:
            self.overrun = True

    def paused(self, function: Waits) -> Waits:
        """A wrapper of ``function``, during which this clock stands still: it waits for the broker, not for the plugin.

        A hook that runs in a thread, with an event loop of its own, may call it too: it runs on the broker's loop. A
        :exc:`~broker_core.errors.ListingFailed` that it raises is the broker's (:meth:`raised`).
        """

        async def here(*given: Any, **named: Any) -> Any:
            self._stop()
            if not self._pauses:
                self._paused_at = self._loop.time()
            self._pauses += 1
            try:
                return await function(*given, **named)
            except ListingFailed as error:  # other errors are due to the plugin's arguments
                self._raised.append(error)
                raise
            finally:
                self._pauses -= 1
                if not self._pauses:
                    self.stood_still += self._loop.time() - self._paused_at
                self._resume()

        async def anywhere(*given: Any, **named: Any) -> Any:
            if asyncio.get_running_loop() is self._loop:
                return await here(*given, **named)
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(here(*given, **named), self._loop)
            )

        return anywhere

    def raised(self, error: BaseException) -> BaseException | None:
        """The error that the broker itself raised to the plugin, if ``error`` is one, or a group of only these."""
        if not self._raised:
            return None
        held = BaseExceptionGroup.exceptions.__get__(error) if is_a(error, BaseExceptionGroup) else (error,)
        mine = {id(each) for each in self._raised}
        if len(held) > _OF_A_GROUP or not all(id(each) in mine for each in held):
            return None
        first: BaseException = held[0]
        return first

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= self._loop.time() - self._since

    def _resume(self) -> None:
        if not self._pauses and self._timer is None and self._waiter is not None:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(max(self._left, 0.0), self._wake, None)

    def _wake(self, _: object) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


log = structlog.get_logger(__name__)

#: Seconds that abandoned work has at the very end.
_LAST_CALL: Final = 0.1


class Abandoned:
    """The abandoned work of one plugin; ``len()`` is how much of it still runs."""

    __slots__ = ("_plugin", "_work")

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._work: set[asyncio.Future[Any]] = set()

    def __len__(self) -> int:
        return len(self._work)

    def leave(self, work: asyncio.Future[Any]) -> None:
        """Cancel ``work``, without waiting for it."""
        self._work.add(work)
        work.add_done_callback(self._ended)
        work.cancel()

    async def end(self) -> None:
        """End running work by closing its coroutine; the loop does not wait for work that resists even that."""
        for work in list(self._work):
            if isinstance(work, asyncio.Task) and not work.done():
                coroutine = work.get_coro()
                try:
                    if coroutine is not None:
                        coroutine.close()
                except BaseException:  # noqa: BLE001, S110 - it is a plugin's, and it may raise what it likes
                    pass
            work.cancel()
        if self._work:
            await asyncio.wait(self._work, timeout=_LAST_CALL)
        for work in list(self._work):
            log.warning("plugin left a task behind that cannot be ended", plugin=self._plugin)
            self._work.discard(work)
            work.remove_done_callback(self._ended)
            if isinstance(work, asyncio.Task):
                _unregister_task(work)

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._work.discard(work)
        if not work.cancelled():
            work.exception()
