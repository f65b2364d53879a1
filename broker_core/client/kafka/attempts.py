"""Retries of one operation of the admin client after transient failures, within its timeout."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.cluster_connections import ClusterConnections
from broker_core.client.kafka.kafka_errors import (
    NotControllerException,
    RebootstrapRequiredException,
    TimeoutException,
    may_pass,
)

__all__ = ["Attempts"]

#: Seconds between two attempts, the first time and the longest: each pause is twice as long as the one before.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0

T = TypeVar("T")


class Attempts:
    """The time and the repetitions of one operation: ``seconds`` from now on for all of its requests together.
    ``retries`` are the attempts of each request after the first one, ``None`` for as many as there is time.
    """

    def __init__(
        self,
        cluster: ClusterConnections,
        seconds: float,
        request_timeout: float,
        retries: int | None = None,
    ) -> None:
        self.cluster = cluster
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._deadline = self._loop.time() + seconds
        self._request_timeout = request_timeout
        self._retries = retries

    @property
    def timeout_ms(self) -> int:
        """The time for a change at a server: as long as its answer is waited for."""
        left = min(self._deadline - self._loop.time(), self._request_timeout)
        return max(1, int(left * 1000))

    async def until_answered(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The result of ``ask``. An error that may pass is raised only when there is no time, or no attempt, left.

        Raises :exc:`~.kafka_errors.TimeoutException`, with the last error in its text, and every other
        :exc:`~broker_core.client.ClientError` of ``ask``.
        """
        last: ClientError | None = None
        try:
            async with asyncio.timeout_at(self._deadline):
                pause, failures = _FIRST_PAUSE, 0
                while True:
                    try:
                        return await ask()
                    except ClientError as failed:
                        if not may_pass(failed) or self.cluster.is_closed:
                            raise
                        last = failed
                    self._heed(last)
                    failures += 1
                    if self._retries is not None and failures > self._retries:
                        raise last
                    await self.cluster.wait(pause * random.uniform(0.8, 1.2))  # noqa: S311  # only spreads attempts
                    pause = min(2 * pause, _LONGEST_PAUSE)
        except TimeoutError:
            reason = f": {last}" if last is not None else ""
            raise TimeoutException(f"no answer within {self._seconds:g} s{reason}") from None

    def _heed(self, failed: ClientError) -> None:
        """Forget the known nodes if an error shows that they are outdated."""
        if isinstance(failed, NotControllerException):
            self.cluster.forget()
        elif isinstance(failed, RebootstrapRequiredException):
            self.cluster.rebootstrap()
