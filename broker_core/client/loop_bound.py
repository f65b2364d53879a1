"""The base of clients that belong to one event loop: closed at the end of ``async with``, refused in another loop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

__all__ = ["LoopBound"]


class LoopBound(ABC):
    """A client of the event loop of its first question."""

    _loop: asyncio.AbstractEventLoop | None = None

    @abstractmethod
    async def close(self) -> None:
        """Close all connections; requests on them fail."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_loop(self) -> None:
        """Raise :exc:`RuntimeError` in another event loop than that of the first call."""
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise RuntimeError(f"{self!r} belongs to another event loop: make one in each loop")
