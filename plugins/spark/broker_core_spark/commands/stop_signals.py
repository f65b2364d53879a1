"""SIGTERM and SIGINT end a command in order: it cleans up, says one line, and exits with 128 + the signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from broker_core.plugin_cli import say

__all__ = ["Stopped", "ended_by_signals"]


class Stopped(BaseException):
    """A signal ends the command. It is no :exc:`Exception`: nothing takes it for a failure of its own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ended_by_signals(
    command: str, result: Callable[[], str] = lambda: "", *, cleanup: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Inside, the first SIGTERM or SIGINT raises :exc:`Stopped` in the main thread, wherever it waits.

    While the block ends, another SIGTERM does nothing, and another SIGINT ends at once. Then ``cleanup`` is called, and
    one line says what ended ``command``, with ``result``. Raises :exc:`typer.Exit`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise Stopped(number)

    before = {
        number: signal.signal(number, stop)
        for number in (signal.SIGTERM, signal.SIGINT)
        if signal.getsignal(number) != signal.SIG_IGN  # as in a shell's background
    }
    try:
        yield
    except Stopped as stopped:
        cleanup()
        ended = f"{command}: ended by {signal.Signals(stopped.number).name}"
        say(": ".join(part for part in (ended, result()) if part))
        raise typer.Exit(128 + stopped.number) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
