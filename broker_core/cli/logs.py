"""Logs on standard error: lines for a person on a terminal, JSON lines for everything else."""

from __future__ import annotations

import logging
import sys
from typing import Any, Final, Literal, TextIO

import structlog

__all__ = ["configure_logs", "silence_logs"]

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logs(
    level: Literal["debug", "info", "warning", "error"],
    form: Literal["auto", "human", "json"],
    stream: TextIO | None = None,
) -> None:
    """Send our own logs and those of libraries to ``stream`` (standard error), in one form.

    Libraries log by the standard library; they are heard from ``warning`` on, whatever our own level.
    """
    stream = sys.stderr if stream is None else stream
    human = form == "human" or (form == "auto" and stream.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    shown: list[Any] = (
        [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
        ]
        if human
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[*shared, *shown],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *shown],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(logging.WARNING, _LEVELS[level]))


def silence_logs() -> None:
    """For commands that answer on standard output and report an error in one line: logs would be noise."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    root = logging.getLogger()
    root.handlers = [logging.NullHandler()]
