"""Replies to commands that are known later, without a place among the requests: the handshake of a client.

The commands that follow may have to wait for such a reply, as commands after a CONNECT do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from broker_core.memory import let_go_of_cancelled
from broker_core.servers.admission import ServerLoad
from broker_core.servers.connection.command_handler import Awaited, Closing

__all__ = ["AwaitedReplies"]

_Reply: TypeAlias = "bytes | Closing | None"


class AwaitedReplies:
    """The replies that one connection waits for. ``replied`` gets each reply; ``failed`` gets an error that no reply
    may end with.

    While :attr:`holds` is true, the commands that follow wait.
    """

    __slots__ = ("_failed", "_load", "_loop", "_replied", "_tasks", "holds")

    def __init__(
        self,
        load: ServerLoad,
        *,
        replied: Callable[[_Reply], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._load = load
        self._replied = replied
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[_Reply]] = set()
        self.holds = False

    def start(self, awaited: Awaited, size: int) -> bool:
        """Wait for the reply to a command of ``size`` bytes; false if there is no room for the command."""
        if not self._load.has_room_for(size):
            return False
        self.holds = self.holds or awaited.holds
        task = self._loop.create_task(awaited.reply())
        self._tasks.add(task)
        self._load.request_tasks.add(task)  # type: ignore[arg-type]  # a task that ends, whatever its result
        task.add_done_callback(partial(self._done, awaited, self._load.hold_command(size)))
        return True

    def cancel(self) -> None:
        """Give up all replies: the client is gone."""
        for task in self._tasks:
            task.cancel()

    def _done(self, awaited: Awaited, held: int, task: asyncio.Task[_Reply]) -> None:
        self._load.hold(-held)
        self._tasks.discard(task)
        self._load.request_tasks.discard(task)
        if awaited.holds:
            self.holds = False
        if task.cancelled():
            let_go_of_cancelled(task)
        elif (error := task.exception()) is not None:
            self._failed(error)
        else:
            self._replied(task.result())
