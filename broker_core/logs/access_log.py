"""The access log: JSON lines in a file, written by a thread, so that nobody waits for the file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final

from broker_core.compact_json import ascii_json
from broker_core.logs.dropped_line_count import DroppedLineCount
from broker_core.logs.line_queue import LineQueue
from broker_core.logs.log_file import open_log_file
from broker_core.settings import AccessLogSettings

__all__ = ["AccessLog", "json_fields"]

#: Seconds that lines are gathered for: a thread that woke up for each would cost more than the line.
_GATHERING: Final = 0.1
#: The fractional part of the golden ratio. Its multiples are spread evenly, and follow no rhythm of the requests.
_STEP: Final = 0.6180339887498949
_SETTING: Final = "log.access.path"


class AccessLog:
    """One file with lines; :meth:`takes_next` and :meth:`write` are for one thread, and wait for nothing."""

    def __init__(self, settings: AccessLogSettings) -> None:
        """Raises :exc:`~broker_core.logs.LogFileError`."""
        #: The lines that were not written.
        self.dropped = DroppedLineCount("full", "failed")
        self._place = 0.0
        self._put_in_force(settings)
        self._queue = LineQueue(
            self._opened(), on_dropped=self.dropped.add, owned=True, gathering=_GATHERING, name="access log"
        )

    def prepare(self, settings: AccessLogSettings) -> Callable[[], None]:
        """Check new settings; the returned function puts them in force. A new file is opened by :meth:`reopen`.

        Raises :exc:`~broker_core.logs.LogFileError`.
        """
        os.close(open_log_file(_SETTING, settings.path))
        return partial(self._put_in_force, settings)

    def _put_in_force(self, settings: AccessLogSettings) -> None:
        #: The keys of properties whose values may be in a line.
        self.properties = frozenset(settings.properties)
        self._file = settings.path
        self._sample = settings.sample

    def takes_next(self) -> bool:
        """Whether the next listing is in the sample, which has one share of any run of listings."""
        if self._sample >= 1:
            return True
        self._place = (self._place + _STEP) % 1.0
        return self._place < self._sample

    def write(self, *fields: str) -> None:
        """Write a line of these fields, which :func:`json_fields` made, with the time in front, without empty ones."""
        now = time.time()
        stamp = f'{{"time":"{_second(int(now))}.{int(now % 1 * 1000):03d}Z"'
        # Everything but ASCII is escaped by json, DEL is not.
        self._queue.offer(",".join((stamp, *filter(None, fields))).replace("\x7f", "\\u007f") + "}\n")

    def reopen(self) -> None:
        """Go on in a new file of the same name, after the former one was moved away.

        Raises :exc:`~broker_core.logs.LogFileError`.
        """
        self._queue.replace(self._opened())

    def close(self, timeout: float) -> None:
        """Write the last lines, in at most ``timeout`` seconds and a bit."""
        self._queue.close(timeout)

    def _opened(self) -> int:
        return open_log_file(_SETTING, self._file)


def json_fields(fields: Mapping[str, Any]) -> str:
    """The fields that have a value, as JSON without its braces.

    Texts of clients went through :func:`~broker_core.redaction.shown`.
    """
    plain = {key: value for key, value in fields.items() if value is not None and value != ""}
    return ascii_json(plain)[1:-1]


@lru_cache(1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
