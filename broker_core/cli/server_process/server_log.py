"""The log of a process: of a server through a queue that never makes it wait; other commands have none."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

import structlog

from broker_core.logs import (
    EACH,
    CapturedPrints,
    EachLine,
    LineQueue,
    LogRenderer,
    RepeatedLines,
    dropped_lines,
    open_log_file,
    reason_of,
)

__all__ = ["ServerLog", "configure_logs", "server_log", "silence_logs"]

#: Libraries whose lines only their own developers need.
_LIBRARIES: Final = (
    "aiohttp",
    "asyncio",
    "asyncpg",
    "concurrent",
    "obstore",
    "opentelemetry",
    "py4j",
    "pyspark",
    "urllib3",
)
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
#: Seconds to write the last lines at the end; the reader may have stopped for good.
_LAST_LINES: Final = 1.0

_SETTING: Final = "log.file"

Level = Literal["debug", "info", "warning", "error"]
Form = Literal["auto", "human", "json"]


class ServerLog:
    """A server's log to standard error or a file. Made by :func:`server_log`."""

    def __init__(self, file: Path | None, level: Level, form: Form) -> None:
        self._file = file
        self._is_file = file is not None
        descriptor = 2 if file is None else open_log_file(_SETTING, file)
        self._level, self._form, self._is_terminal = level, form, os.isatty(descriptor)
        self._repeats = RepeatedLines()
        self._writer = LineQueue(
            descriptor, on_dropped=dropped_lines.add, more=self._counted, owned=file is not None
        )
        self._output = LineQueue(1)
        self._configure()

    def prepare(self, file: Path | None, level: Level, form: Form) -> Callable[[], None]:
        """Check other settings; the returned function puts them in force. A new file is opened by :meth:`reopen`.

        Raises :exc:`~broker_core.logs.LogFileError`.
        """
        if file is not None:
            os.close(open_log_file(_SETTING, file))

        def put_in_force() -> None:
            self._file, self._level, self._form = file, level, form
            self._configure()

        return put_in_force

    def reopen(self) -> None:
        """Go on in a new file of the same name, after the former one was moved away, or in the file of new settings.

        Raises :exc:`~broker_core.logs.LogFileError`.
        """
        if self._file is None and not self._is_file:
            return
        descriptor = os.dup(2) if self._file is None else open_log_file(_SETTING, self._file)
        is_terminal = os.isatty(descriptor)
        self._writer.replace(descriptor)
        self._is_file = self._file is not None
        if is_terminal != self._is_terminal:
            self._is_terminal = is_terminal
            self._configure()

    def _configure(self) -> None:
        human = self._form == "human" or (self._form == "auto" and self._is_terminal)
        self._renderer = LogRenderer(human=human, colors=self._is_terminal)
        self.take = configure_logs(self._level, self._renderer, self._repeats, self._writer.offer)

    def output(self, line: str) -> None:
        """Write a line to standard output."""
        self._output.offer(line + "\n")

    def error_output(self, line: str) -> None:
        """Log a line that was printed on standard error."""
        if line:
            self.take("stderr", {"event": line, "level": "warning", "logger": "stderr"})

    def flush(self, timeout: float) -> None:
        """Write the waiting lines, in about ``timeout`` seconds at most."""
        for line in self._counted(everything=True):
            self._writer.offer(line)
        self._writer.flush(timeout)
        self._output.flush(timeout)

    def close(self) -> None:
        """Write the last lines, bounded in time."""
        self.flush(_LAST_LINES)
        self._writer.close(0.0)
        self._output.close(0.0)

    def _counted(self, *, everything: bool = False) -> list[str]:
        return [self._renderer.line(event) for event in self._repeats.due(everything=everything)]


@contextmanager
def server_log(file: Path | None, level: Level, form: Form) -> Iterator[ServerLog]:
    """Send all output of this process through queues: structlog, the standard library's logging, warnings, and prints
    to standard output or standard error. Raises :exc:`~broker_core.logs.LogFileError`.
    """
    log = ServerLog(file, level, form)
    out, err = sys.stdout, sys.stderr
    printed = CapturedPrints(1, log.output), CapturedPrints(2, log.error_output)
    sys.stdout, sys.stderr = printed
    logging.captureWarnings(True)
    try:
        yield log
    finally:
        logging.captureWarnings(False)
        for text in printed:
            text.end()
        sys.stdout, sys.stderr = out, err
        log.close()


def configure_logs(
    level: Level, renderer: LogRenderer, repeats: RepeatedLines, offer: Callable[[str], object]
) -> Callable[[str, dict[str, Any]], None]:
    """Send our own logs and those of libraries to ``offer``, a line each; returns a function that logs other events.

    Libraries and plugins log by the standard library. Libraries of the core and of our own plugins log from ``warning``
    on, whatever the level.
    """
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)

    def take(logger: str, event: dict[str, Any]) -> None:
        stamped = stamp(None, "", event)
        if repeats.folds(logger, stamped):
            dropped_lines.add("rate")
        else:
            offer(renderer.line(stamped))

    def take_each(logger: str, event: dict[str, Any], each: EachLine) -> None:
        if reason_of(logger, event) is not None:  # may be folded
            for value in each.values:
                take(logger, {**event, each.field: value})
            return
        for line in renderer.lines(stamp(None, "", event), *each):
            offer(line)

    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            _Last(take, take_each),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=_Named,
    )
    root = logging.getLogger()
    root.handlers = [_Handler(take)]
    root.setLevel(_LEVELS[level])
    for library in _LIBRARIES:
        logging.getLogger(library).setLevel(max(logging.WARNING, _LEVELS[level]))
    return take


def silence_logs() -> None:
    """Turn logs off, for commands that answer on standard output and report an error in one line."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    root = logging.getLogger()
    root.handlers = [logging.NullHandler()]


class _Last:
    """The last of structlog's processors, which hands an event on."""

    #: Read by :func:`broker_core.logs.info_each`.
    takes_each_line: Final = True

    def __init__(
        self,
        take: Callable[[str, dict[str, Any]], None],
        take_each: Callable[[str, dict[str, Any], EachLine], None],
    ) -> None:
        self._take = take
        self._take_each = take_each

    def __call__(self, logger: Any, _method: str, event: MutableMapping[str, Any]) -> Any:
        each: EachLine | None = event.pop(EACH, None)
        name = getattr(logger, "name", "")
        if each is None:
            self._take(name, dict(event))
        else:
            self._take_each(name, dict(event), each)
        raise structlog.DropEvent


class _Named:
    """The object that structlog wraps: it has the name given to ``structlog.get_logger``, and is never called."""

    def __init__(self, *names: object) -> None:
        self.name = str(names[0]) if names else ""


class _Handler(logging.Handler):
    """A handler that sends the standard library's records to the same log."""

    def __init__(self, take: Callable[[str, dict[str, Any]], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        try:
            words = record.getMessage()
        except Exception:  # noqa: BLE001 - the arguments do not fit the message: its author needs to see it
            words = f"{record.msg} {record.args}"
        event: dict[str, Any] = {"event": words, "level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            event["exc_info"] = record.exc_info
        if record.stack_info:
            event["stack"] = record.stack_info
        self._take(record.name, event)
