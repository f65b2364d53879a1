"""Signals while a command is being imported: they end the process with one line, and with the code of shells.

Once a command begins, signals have their former handlers, or the command's. SIGHUP does not end a server, and is noted
until its event loop runs.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

__all__ = ["end_by_early_signals", "note_hangups", "noted_hangup", "restore_signals", "starts_a_server"]

#: The handlers that signals had before.
_BEFORE: Final[dict[int, Any]] = {}
_HANGUPS: Final[list[int]] = []
_DEFAULTS: Final = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


def end_by_early_signals() -> None:
    """Let SIGTERM and SIGINT end the process at once, since nothing is open yet. Ignored ones stay ignored."""
    for number, handler in _DEFAULTS.items():
        if signal.getsignal(number) is handler:
            _BEFORE[number] = signal.signal(number, _end)


def starts_a_server(arguments: Sequence[str]) -> bool:
    """Whether the command is ``serve``, judged before the parser of arguments is imported."""
    return next((word for word in arguments if not word.startswith("-")), None) == "serve"


def note_hangups() -> None:
    """Note SIGHUP from now on, instead of ending the process."""
    signal.signal(signal.SIGHUP, _note)


def noted_hangup() -> bool:
    """Whether SIGHUP came since the last call."""
    came = bool(_HANGUPS)
    _HANGUPS.clear()
    return came


def restore_signals() -> None:
    """Restore the handlers of signals, if this process has changed them."""
    while _BEFORE:
        signal.signal(*_BEFORE.popitem())


def _note(number: int, _: FrameType | None) -> None:
    _HANGUPS[:] = [number]


def _end(number: int, _: FrameType | None) -> None:
    os.write(2, f"broker-core: ended by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)
