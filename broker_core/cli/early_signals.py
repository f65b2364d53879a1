"""A signal that comes while a command is being imported ends the process with one line, and with the code of shells.

From a command's beginning on signals do what they did before, or what the command says. SIGHUP ends no server, and is
noted until its event loop runs.
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
    """From now on SIGTERM and SIGINT end the process at once: nothing is open yet. Ignored ones stay ignored."""
    for number, handler in _DEFAULTS.items():
        if signal.getsignal(number) is handler:
            _BEFORE[number] = signal.signal(number, _end)


def starts_a_server(arguments: Sequence[str]) -> bool:
    """Whether the command is ``serve``, as far as its arguments tell before anything is imported that parses them."""
    return next((word for word in arguments if not word.startswith("-")), None) == "serve"


def note_hangups() -> None:
    """From now on SIGHUP ends this process no more, and is noted."""
    signal.signal(signal.SIGHUP, _note)


def noted_hangup() -> bool:
    """Whether SIGHUP came since it was asked for the last time."""
    came = bool(_HANGUPS)
    _HANGUPS.clear()
    return came


def restore_signals() -> None:
    """Give signals the handlers that they had before, if this process has changed them."""
    while _BEFORE:
        signal.signal(*_BEFORE.popitem())


def _note(number: int, _: FrameType | None) -> None:
    _HANGUPS[:] = [number]


def _end(number: int, _: FrameType | None) -> None:
    os.write(2, f"broker-core: ended by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)
