"""The standard streams of one command, apart from the rest of the test's process.

``sys.stdout`` and its like belong to the whole process, in which a server may be logging. So each stream is replaced by
one that looks from where it is called: in the context of a command it is the command's own, elsewhere the former one.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

__all__ = ["OwnStreams", "own_streams"]

_NAMES: Final = ("stdin", "stdout", "stderr")


class OwnStreams:
    """The streams of one command; a tool that prints bytes finds a ``buffer`` too."""

    def __init__(self, given: str) -> None:
        self.stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
        self.stdout = io.TextIOWrapper(
            io.BytesIO(), encoding="utf-8", errors="surrogateescape", newline="", write_through=True
        )
        self.stderr = io.TextIOWrapper(
            io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="", write_through=True
        )

    @property
    def printed(self) -> tuple[str, str]:
        """The text on standard output and on standard error."""
        return _text(self.stdout), _text(self.stderr)


_CURRENT: ContextVar[OwnStreams | None] = ContextVar("streams", default=None)
_LOCK: Final = threading.Lock()
_users = 0


class _Routed:
    """A stream of the process, for code outside of commands."""

    def __init__(self, name: str, original: Any) -> None:
        self._name = name
        self._original = original

    def __getattr__(self, attribute: str) -> Any:
        own = _CURRENT.get()
        return getattr(self._original if own is None else getattr(own, self._name), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__getattr__("readline"), "")


_originals: dict[str, Any] = {}


@contextmanager
def own_streams(streams: OwnStreams) -> Iterator[None]:
    """In the block, in this context and in what it starts, ``streams`` are ``sys.stdin``, ``sys.stdout`` and
    ``sys.stderr``.
    """
    global _users  # noqa: PLW0603 - of the process, as the streams are
    with _LOCK:
        if not _users:
            for name in _NAMES:
                _originals[name] = getattr(sys, name)
                setattr(sys, name, _Routed(name, _originals[name]))
        _users += 1
    token = _CURRENT.set(streams)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        with _LOCK:
            _users -= 1
            if not _users:
                for name in _NAMES:
                    setattr(sys, name, _originals.pop(name))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    data = stream.buffer
    assert isinstance(data, io.BytesIO)
    return data.getvalue().decode("utf-8", "surrogateescape")
