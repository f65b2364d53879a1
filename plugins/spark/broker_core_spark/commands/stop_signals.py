"""SIGTERM and SIGINT end a command in order: it cleans up, says one line, and exits with 128 + the signal."""

from __future__ import annotations

import logging
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import typer

from broker_core.plugin_cli import say

__all__ = ["Stopped", "ended_by_signals"]

#: Seconds after which a signal comes again whose exception got lost.
_AGAIN: Final = 0.1


class Stopped(KeyboardInterrupt):
    """A signal (its argument) ends the command. As no :exc:`Exception`, nothing takes it for a failure of its own."""


@contextmanager
def ended_by_signals(
    command: str, result: Callable[[], str] = lambda: "", *, cleanup: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Ends a block in order: the first SIGTERM or SIGINT raises :exc:`Stopped` in the main thread, even in a wait.

    A destructor or a callback of a library may lose the exception: the signal comes again. While the block ends,
    another SIGTERM does nothing, and another SIGINT ends at once. Then ``cleanup`` is called, and one line says what
    ended ``command``, with ``result``. Raises :exc:`typer.Exit`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    raised: list[weakref.ref[Stopped]] = []  # the last one is alive while the block ends

    def stop(number: int, _: FrameType | None) -> None:
        if raised and raised[-1]() is not None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        stopped = Stopped(number)
        raised.append(weakref.ref(stopped, lambda _: lost(number)))
        logging.disable()  # libraries log tracebacks about a JVM that the same signal has ended
        try:
            raise stopped
        finally:
            del stopped  # this frame is in its traceback: it would keep itself alive

    def lost(number: int) -> None:
        # Not at once: an exception in a callback would be lost again.
        again = threading.Timer(_AGAIN, lambda: os.kill(os.getpid(), number) if raised else None)
        again.daemon = True
        again.start()

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGTERM, signal.SIGINT)
        if signal.getsignal(number) != signal.SIG_IGN  # as in a shell's background
    }
    try:
        yield
    except Stopped as stopped:
        cleanup()
        (number,) = stopped.args
        ended = f"{command}: ended by {signal.Signals(number).name}"
        say(": ".join(part for part in (ended, result()) if part))
        raise typer.Exit(128 + number) from None
    finally:
        logging.disable(logging.NOTSET)
        raised.clear()
        for number, handler in before.items():
            signal.signal(number, handler)
