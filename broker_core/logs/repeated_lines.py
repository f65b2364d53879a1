"""Folding of repeated lines: the first is shown at once, those that follow are counted and shown once per interval.

A client can make a server say that its frames are bad, as often as it likes. No line of that is worth more than the
first and the number of the others.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

__all__ = ["INTERVAL", "FoldedLine", "RepeatedLines", "reason_of"]

#: Seconds that the lines of one reason are counted for before one line says how many they were.
INTERVAL: Final = 5.0

#: Reasons that are distinguished at a time; any further ones are one reason for each logger.
_MAX_REASONS: Final = 1000

#: The loggers that clients (and an absent collector of spans) can make log as often as they like. Lines of an operator
#: or a plugin's author are never folded.
_OF_CLIENTS: Final = (
    *(f"broker_core.{part}" for part in ("catalog", "pipeline", "plugins", "servers", "upstream")),
    *("aiohttp", "asyncio", "opentelemetry", "py.warnings"),
)

#: The fields that distinguish two lines of one event, besides the logger.
_TELLING: Final = ("level", "reason", "plugin", "hook")

#: The end of the words of an event, where numbers and representations of objects begin, which differ each time.
_VARYING: Final = re.compile(r"[\d<({\[\n]")


def reason_of(logger: str, event: Mapping[str, Any]) -> Hashable | None:
    """The reason under which lines of this event are counted; ``None`` if they are never folded."""
    if not _is_of_clients(logger):
        return None
    words = _VARYING.split(str(event.get("event", "")), maxsplit=1)[0]
    return logger, words[:200], *(str(event.get(key, ""))[:100] for key in _TELLING)


@lru_cache(1000)
def _is_of_clients(logger: str) -> bool:
    return any(logger == name or logger.startswith(f"{name}.") for name in _OF_CLIENTS)


@dataclass(slots=True)
class FoldedLine:
    """The lines of one reason since the line that was shown: how many, and the last of them."""

    since: float
    count: int = 0
    last: dict[str, Any] = field(default_factory=dict)


class RepeatedLines:
    """Decides which lines are shown, and which are counted. From any thread."""

    def __init__(
        self,
        interval: float = INTERVAL,
        *,
        max_reasons: int = _MAX_REASONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._interval = interval
        self._max_reasons = max_reasons
        self._clock = clock
        self._lock = threading.RLock()  # a finalizer may log in the midst of it
        self._reasons: dict[Hashable, FoldedLine] = {}

    def folds(self, logger: str, event: Mapping[str, Any]) -> bool:
        """Whether this line is counted instead of shown."""
        reason = reason_of(logger, event)
        if reason is None:
            return False
        now = self._clock()
        with self._lock:
            folded = self._reasons.get(reason)
            if folded is None and len(self._reasons) >= self._max_reasons:
                reason = logger
                folded = self._reasons.get(reason)
            if folded is None or (not folded.count and now - folded.since >= self._interval):
                self._reasons[reason] = FoldedLine(now)
                return False
            folded.count += 1
            # Without the traceback: it would keep alive all that it passed through.
            folded.last = {key: value for key, value in event.items() if key not in ("exc_info", "stack")}
            return True

    def due(self, *, everything: bool = False) -> list[dict[str, Any]]:
        """A line for each reason whose interval is over (or for all): the last that was counted.

        ``repeats`` is the number of lines. A single one is shown as it is, a little late.
        """
        now = self._clock()
        lines: list[dict[str, Any]] = []
        with self._lock:
            for reason, folded in list(self._reasons.items()):
                if not everything and now - folded.since < self._interval:
                    continue
                if folded.count:
                    lines.append(
                        folded.last if folded.count == 1 else {**folded.last, "repeats": folded.count}
                    )
                    self._reasons[reason] = FoldedLine(now)
                else:
                    del self._reasons[reason]
        return lines
