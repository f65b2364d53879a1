"""A signal that comes while a command is being imported ends the process with one line, and with the code of shells.

From a command's beginning on signals do what they did before, or what the command says.
"""

from __future__ import annotations

import os
import signal
from types import FrameType
from typing import Any, Final

__all__ = ["end_by_early_signals", "restore_signals"]

#: The handlers that signals had before.
_BEFORE: Final[dict[int, Any]] = {}
_DEFAULTS: Final = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


def end_by_early_signals() -> None:
    """From now on SIGTERM and SIGINT end the process at once: nothing is open yet. Ignored ones stay ignored."""
    for number, handler in _DEFAULTS.items():
        if signal.getsignal(number) is handler:
            _BEFORE[number] = signal.signal(number, _end)


def restore_signals() -> None:
    """Give signals the handlers that they had before, if this process has changed them."""
    while _BEFORE:
        signal.signal(*_BEFORE.popitem())


def _end(number: int, _: FrameType | None) -> None:
    os.write(2, f"broker-core: ended by {signal.Signals(number).name}\n".encode())
    os._exit(128 + number)
