"""The places of streams: how many are open, how many one client may have, and their end with their server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

from broker_core.errors import Cause, TooManyRequests
from broker_core.servers.http.api.admission import ApiAdmission

__all__ = ["StreamPlaces"]


class _Stream(Protocol):
    def close(self) -> None: ...


class StreamPlaces:
    """The streams of all servers of a broker; for one event loop."""

    def __init__(self) -> None:
        self._of: Counter[tuple[ApiAdmission, Hashable]] = Counter()
        self._open: dict[ApiAdmission, set[_Stream]] = {}
        self._ending: dict[ApiAdmission, asyncio.Task[None]] = {}

    def total(self) -> int:
        """The number of open streams."""
        return self._of.total()

    @contextmanager
    def place(self, admission: ApiAdmission, client: Hashable, stream: _Stream) -> Iterator[None]:
        """The place of one more stream of a client of one server, whose end closes it.

        If half of the server's places are taken, no client has more than an eighth of them. Raises
        :exc:`TooManyRequests`.
        """
        places, who = admission.streams, (admission, client)
        limit = places.limit
        has_its_share = 0 < limit <= 2 * places.taken and self._of[who] >= max(1, limit // 8)
        if has_its_share or not places.take():
            raise TooManyRequests("Too many streams of topics are open", reason="lookups", cause=Cause.QUEUE)
        self._of[who] += 1
        if admission not in self._ending:
            self._open[admission] = set()
            self._ending[admission] = asyncio.get_running_loop().create_task(self._end_with(admission))
        self._open[admission].add(stream)
        try:
            yield
        finally:
            self._open[admission].discard(stream)
            places.give_back()
            self._of[who] -= 1
            if not self._of[who]:
                del self._of[who]

    async def stop(self) -> None:
        """Wait for no server's end any more."""
        for task in self._ending.values():
            task.cancel()
        if self._ending:
            await asyncio.wait(list(self._ending.values()))

    async def _end_with(self, admission: ApiAdmission) -> None:
        await admission.draining.wait()
        for stream in list(self._open[admission]):
            stream.close()
