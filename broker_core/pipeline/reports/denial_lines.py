"""Denials by rules in the log: one line for each, or one for all of a request, which may name many topics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import structlog

from broker_core.access import Access
from broker_core.errors import ListingFailed

__all__ = ["log_denial", "one_line_of_denials"]

_log = structlog.get_logger(__name__)

#: The topics that a line names.
_NAMED: Final = 5


class _Denials:
    """The denials of one request: the first with its message, and the names of some."""

    def __init__(self) -> None:
        self.is_over = False
        self._count = 0
        self._topics: list[str] = []
        self._first: dict[str, Any] = {}

    def add(self, fields: dict[str, Any], topic: str | None) -> None:
        self._first = self._first or fields
        self._count += 1
        if topic is not None and len(self._topics) < _NAMED and topic not in self._topics:
            self._topics.append(topic)

    def log(self) -> None:
        self.is_over = True
        more = {"denials": self._count, "topics": self._topics} if self._count > 1 else {}
        if self._first:
            _log.info("denied by the rules", **self._first, **more)


_REQUEST: Final[ContextVar[_Denials | None]] = ContextVar("broker_core_denials", default=None)


@contextmanager
def one_line_of_denials() -> Iterator[None]:
    """Log the denials of a request as one line once it has its answer, also those within another of these."""
    if _REQUEST.get() is not None:
        yield
        return
    denials = _Denials()
    token = _REQUEST.set(denials)
    try:
        yield
    finally:
        _REQUEST.reset(token)
        denials.log()


def log_denial(access: Access, denied: ListingFailed) -> None:
    """Log that the rules denied an access."""
    fields = {"peer": access.asker.remote_address, "message": denied.message}
    denials = _REQUEST.get()
    if denials is None or denials.is_over:  # of a task that has outlived its request
        denials = _Denials()
        denials.add(fields, None)
        denials.log()
    else:
        denials.add(fields, None if access.topic is None else str(access.topic))
