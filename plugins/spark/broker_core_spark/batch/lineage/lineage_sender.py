"""Sending lineage events on a thread: a receiver that is dead or slow costs a build at most some seconds at its end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Final

__all__ = ["PATIENCE", "LineageSender"]

#: Seconds that the end of a build waits for events under way.
PATIENCE: Final = 5.0


class LineageSender:
    """Sends events in order by ``emit``. What fails is said once, by ``warn``, at the end."""

    def __init__(
        self, emit: Callable[[Any], object], warn: Callable[[str], None], patience: float = PATIENCE
    ) -> None:
        self._emit = emit
        self._warn = warn
        self._patience = patience
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._send, name="lineage", daemon=True)
        self._thread.start()

    def send(self, event: Any) -> None:
        """Send an event soon. Does not wait."""
        self._events.put(event)

    def close(self) -> None:
        """Wait for the events, at most for the patience, and warn if one was not taken."""
        self._events.put(None)
        self._thread.join(self._patience)
        if self._thread.is_alive():
            self._warn(f"lineage: the receiver did not take the events within {self._patience:g} seconds")
        elif self._fault is not None:
            self._warn(f"lineage: the receiver did not take all events: {_said(self._fault)}")

    def _send(self) -> None:
        while (event := self._events.get()) is not None:
            try:
                self._emit(event)
            except Exception as error:  # noqa: BLE001 - of any transport; lineage is no reason for a build to fail
                self._fault = self._fault or error


def _said(error: Exception) -> str:
    """What is known without the message, which may have the receiver's address with a secret."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ if status is None else f"status {status}"
